package retry

import (
	"math/rand/v2"
	"testing"
	"time"

	"nightshift/models"
)

func TestDecide(t *testing.T) {
	policy := func(most int32) *models.RetryPolicy {
		return &models.RetryPolicy{MaxAttempts: most, Backoff: "exponential", InitialDelay: 2, MaxDelay: 20}
	}
	classes := policy(5)
	classes.Classes = map[string]models.ClassPolicy{"timeout": {MaxAttempts: 2}, "not_found": {MaxAttempts: 3}}
	rng := rand.New(rand.NewPCG(1, 1))
	for _, c := range []struct {
		name    string
		failure Failure
		policy  *models.RetryPolicy
		want    Verdict
	}{
		{"first failure waits the initial delay", Failure{Class: "network"}, policy(3), Verdict{Again: true, Uses: true, Wait: 2 * time.Second}},
		{"delays double", Failure{Class: "network", Used: 2}, policy(9), Verdict{Again: true, Uses: true, Wait: 8 * time.Second}},
		{"up to the most", Failure{Class: "network", Used: 7}, policy(9), Verdict{Again: true, Uses: true, Wait: 20 * time.Second}},
		{"the last attempt is the last", Failure{Class: "network", Used: 2}, policy(3), Verdict{Uses: true}},
		{"permanent classes are not repeated", Failure{Class: "invalid_input"}, policy(9), Verdict{Uses: true}},
		{"unless the policy names them", Failure{Class: "not_found", Used: 1}, classes, Verdict{Again: true, Uses: true, Wait: 4 * time.Second}},
		{"up to what it says of them", Failure{Class: "not_found", Used: 2}, classes, Verdict{Uses: true}},
		{"which says nothing of the others", Failure{Class: "invalid_input"}, classes, Verdict{Uses: true}},
		{"a class has its own limit", Failure{Class: "timeout", Used: 1}, classes, Verdict{Uses: true}},
		{"the provider's wait is honoured", Failure{Class: "overloaded", RetryAfter: 90}, policy(3), Verdict{Again: true, Uses: true, Wait: 90 * time.Second}},
		{"rate limits use no attempt", Failure{Class: "rate_limited", Used: 2}, policy(3), Verdict{Again: true, Wait: 4 * time.Second}},
		{"until an hour has gone by", Failure{Class: "rate_limited", Used: 2, Since: 2 * time.Hour}, policy(3), Verdict{Uses: true}},
	} {
		if got := Decide(c.failure, c.policy, rng); got != c.want {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
}

func TestJitterIsFull(t *testing.T) {
	policy := &models.RetryPolicy{MaxAttempts: 5, Backoff: "fixed", InitialDelay: 10, MaxDelay: 300, Jitter: true}
	rng := rand.New(rand.NewPCG(7, 7))
	low, high, sum := time.Hour, time.Duration(0), time.Duration(0)
	for range 10_000 {
		wait := Decide(Failure{Class: "network"}, policy, rng).Wait
		low, high, sum = min(low, wait), max(high, wait), sum+wait
	}
	if low > 10*time.Millisecond || high < 9990*time.Millisecond || high > 10*time.Second {
		t.Errorf("waits from %s to %s", low, high)
	}
	if mean := sum / 10_000; mean < 4900*time.Millisecond || mean > 5100*time.Millisecond {
		t.Errorf("mean wait %s", mean)
	}
}

func TestUnknownClassesAreInternal(t *testing.T) {
	if Class("nonsense") != "internal" || Class("network") != "network" {
		t.Error("classes are mixed up")
	}
}
