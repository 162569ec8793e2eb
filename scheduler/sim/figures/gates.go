package figures

import (
	"fmt"
	"time"

	"nightshift/models"
	"nightshift/scheduler/sim"
)

// gates has work wait for rates, for several keys and for its turn, while workers die, brains change and commits fail.
func gates(l *lab) []Figure {
	r := l.live(gateScenario())
	most, used := 0.0, 1.0
	for _, rate := range r.Rates {
		most = max(most, float64(rate.Most)/float64(max(rate.Limit, rate.Burst)))
		seconds := rate.Last.Sub(rate.First).Seconds()
		used = min(used, float64(rate.Starts-rate.Limit)/float64(rate.Limit)*float64(rate.PerSeconds)/seconds)
	}
	wait := r.Flows[3].Wait
	return []Figure{
		{Name: "rates under faults: most starts in any stretch, of the limit", Value: most, Goal: 1, Fails: 1, Format: "%.3f", Note: fmt.Sprintf("%d rates", len(r.Rates))},
		{Name: "rates under faults: used while work waits, the least", Value: used, Goal: 0.98, Fails: 0.95, Format: "%.4f", More: true},
		{Name: "ordered tasks under faults: inversions", Value: float64(r.Counters["order_inversions"]), Goal: 0, Fails: 0, Format: "%.0f", Note: fmt.Sprintf("%d ordered starts", r.Flows[2].Wait.Tasks)},
		{Name: "tasks of two keys between streams on each: longest wait", Value: wait.Most.Minutes(), Goal: 35, Fails: 60, Format: "%.1f min", Note: fmt.Sprintf("%d tasks; the ageing bound is 30 min", wait.Tasks)},
	}
}

func gateScenario() sim.Scenario {
	key := func(name string) []models.TaskKey { return []models.TaskKey{{Name: name, Limit: 1}} }
	return sim.Scenario{
		Seed: 9, Until: 2 * time.Hour,
		Tenants: []sim.Tenant{{Name: "gated", Weight: 1, Rates: []models.RateLimit{
			{Key: "window", Limit: 20, PerSeconds: 60}, {Key: "even", Limit: 30, PerSeconds: 60, Burst: 1},
		}}},
		Workers: []sim.Worker{{Name: "w", Count: 4, Worker: slots(20)}},
		Arrivals: []sim.Arrival{
			{Tenant: "gated", Name: "window", Class: work("x.rated"), Batch: 2_000, Run: 2 * time.Second, RateKeys: []string{"window"}},
			{Tenant: "gated", Name: "even", Class: work("x.rated"), Batch: 3_000, Run: 2 * time.Second, RateKeys: []string{"even"}},
			{Tenant: "gated", Name: "ordered", Class: work("x.ordered"), Every: 10 * time.Second, Count: 600, Batch: 3, Run: 3 * time.Second, Shape: sim.Exponential, LimitKey: "account", KeyLimit: 1, Keys: 4, Ordered: true, FailPercent: 10, MaxAttempts: 20, PriorityTo: 100},
			{Tenant: "gated", Name: "both", Class: work("x.both"), At: time.Minute, Every: 15 * time.Minute, Count: 5, Run: time.Second, Concurrency: []models.TaskKey{{Name: "left", Limit: 1}, {Name: "right", Limit: 1}}},
			{Tenant: "gated", Name: "left", Class: work("x.left"), Closed: 3, Count: -1, Run: 7 * time.Second, Concurrency: key("left")},
			{Tenant: "gated", Name: "right", Class: work("x.right"), Closed: 3, Count: -1, Run: 11 * time.Second, Concurrency: key("right")},
		},
		Faults: sim.Faults{CrashEvery: 20 * time.Minute, DownFor: 30 * time.Second, LostAnswers: 1, BrainEvery: 10 * time.Minute, FailedApplies: 5, UnclearApplies: 3},
	}
}
