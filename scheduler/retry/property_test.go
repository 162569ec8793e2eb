package retry

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"nightshift/models"
)

func anyPolicy(t *rapid.T) *models.RetryPolicy {
	p := &models.RetryPolicy{
		MaxAttempts:  rapid.Int32Range(1, 20).Draw(t, "most"),
		Backoff:      rapid.SampledFrom([]string{"exponential", "linear", "fixed"}).Draw(t, "backoff"),
		InitialDelay: rapid.Float64Range(0, 600).Draw(t, "initial"), MaxDelay: rapid.Float64Range(0, 86400).Draw(t, "longest"),
		Jitter: rapid.Bool().Draw(t, "jitter"),
	}
	if class := rapid.SampledFrom(append([]string{""}, models.ErrorClasses...)).Draw(t, "own"); class != "" {
		p.Classes = map[string]models.ClassPolicy{class: {MaxAttempts: rapid.Int32Range(1, 20).Draw(t, "own most")}}
	}
	return p
}

// Whatever fails however often: a task is tried as often as its policy says, no more and no less; it waits no less than
// the provider asked for and no longer than the policy allows beyond that; what is
// permanent is never tried again unless its policy names it.
func TestAttemptsAndWaitsStayWithinThePolicy(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		policy, rng := anyPolicy(t), rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		class := rapid.SampledFrom(models.ErrorClasses).Draw(t, "class")
		most := policy.MaxAttempts
		if own, ok := policy.Classes[class]; ok {
			most = own.MaxAttempts
		} else if slices.Contains([]string{"invalid_input", "authentication", "permission_denied", "not_found"}, class) {
			most = 1
		}
		used, free := int32(0), 0
		for {
			f := Failure{Class: class, Used: used, RetryAfter: rapid.SampledFrom([]float64{0, 0.5, 90}).Draw(t, "after")}
			if class == "rate_limited" && free > 5 {
				f.Since = RateLimitGrace
			}
			v := Decide(f, policy, rng)
			if v.Uses {
				used++
			} else if free++; class != "rate_limited" || f.Since >= RateLimitGrace {
				t.Fatalf("an attempt that failed with %s after %s used none", class, f.Since)
			}
			if v.Again != (!v.Uses || used < most) {
				t.Fatalf("%d of %d attempts used, again: %v", used, most, v.Again)
			}
			if !v.Again {
				return
			}
			least, longest := seconds(f.RetryAfter), seconds(max(policy.MaxDelay, f.RetryAfter))
			if exact := seconds(max(Delay(policy, max(1, used)), f.RetryAfter)); !policy.Jitter {
				least, longest = exact, exact
			}
			if v.Wait < least || v.Wait > longest {
				t.Fatalf("after %d attempts it waits %s, which is not within %s and %s", used, v.Wait, least, longest)
			}
		}
	})
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// Waits never shrink with the attempts, and never pass the longest.
func TestDelaysRiseToTheLongest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		policy, last := anyPolicy(t), 0.0
		for n := int32(1); n <= 100; n++ {
			d := Delay(policy, n)
			if d < last || d > policy.MaxDelay || d < min(policy.InitialDelay, policy.MaxDelay) {
				t.Fatalf("after %d attempts the delay is %f, before it was %f, of at most %f", n, d, last, policy.MaxDelay)
			}
			last = d
		}
	})
}
