package retry

import (
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"nightshift/models"
)

// RateLimitGrace is how long a rate-limited task is tried again without using its attempts.
const RateLimitGrace = time.Hour

// permanent are the classes of which another attempt would end the same, unless the policy says otherwise of one by name.
var permanent = []string{"invalid_input", "authentication", "permission_denied", "not_found"}

// Failure is what is known of a failed attempt.
type Failure struct {
	Class      string
	Used       int32         // attempts used before this one
	RetryAfter float64       // seconds the provider asked for, or 0
	Since      time.Duration // how long the task has been ready or tried
}

// Verdict is what follows.
type Verdict struct {
	Again bool
	Wait  time.Duration
	Uses  bool // the attempt counts
}

// Class is the class as the platform knows it: an unknown one is internal.
func Class(reported string) string {
	if slices.Contains(models.ErrorClasses, reported) {
		return reported
	}
	return "internal"
}

// Decide applies the policy to a failure. rng draws the jitter, uniform in [0, delay].
func Decide(f Failure, policy *models.RetryPolicy, rng *rand.Rand) Verdict {
	own, ruled := policy.Classes[f.Class]
	if !ruled && slices.Contains(permanent, f.Class) {
		return Verdict{Uses: true}
	}
	uses := f.Class != "rate_limited" || f.Since >= RateLimitGrace
	used := f.Used
	if uses {
		used++
	}
	most := policy.MaxAttempts
	if ruled {
		most = own.MaxAttempts
	}
	if used >= most && uses {
		return Verdict{Uses: true}
	}
	delay := Delay(policy, max(1, used))
	if policy.Jitter {
		delay *= rng.Float64()
	}
	if f.RetryAfter > 0 {
		delay = max(delay, f.RetryAfter)
	}
	return Verdict{Again: true, Uses: uses, Wait: time.Duration(min(delay, 366*86400) * float64(time.Second))}
}

// Delay is the wait in seconds after the n-th used attempt, before jitter.
func Delay(policy *models.RetryPolicy, n int32) float64 {
	delay := policy.InitialDelay
	switch policy.Backoff {
	case "exponential":
		delay *= math.Pow(2, float64(min(n-1, 60)))
	case "linear":
		delay *= float64(n)
	}
	return min(delay, policy.MaxDelay)
}
