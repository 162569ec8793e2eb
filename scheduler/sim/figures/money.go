package figures

import (
	"fmt"
	"time"

	"nightshift/models"
	"nightshift/scheduler/sim"
)

const dollar = 1_000_000

// budgets lets work run that never comes to an end, or of which there is far too much, under a budget: what its workers have
// spent is counted beside the engine, whether they could report it or not.
func budgets(l *lab) []Figure {
	one := sim.Tenant{Name: "heavy", Weight: 1, Budgets: []models.Budget{{Period: models.InTotal, Timezone: "UTC", LimitMicro: at(dollar)}}}
	loop := l.live(sim.Scenario{
		Seed: 33, Until: 24 * time.Hour, Tenants: []sim.Tenant{one}, Workers: []sim.Worker{{Name: "w", Count: 2, Worker: slots(8)}},
		Arrivals: []sim.Arrival{{Tenant: "heavy", Class: work("x.broken"), Run: 20 * time.Second, FailPercent: 100, MaxAttempts: 10_000, CostMicro: 40_000, Told: 30_000}},
	})
	five := sim.Tenant{Name: "heavy", Weight: 9, Budgets: []models.Budget{{Period: models.InTotal, Timezone: "UTC", LimitMicro: at(5 * dollar)}}}
	s := flooded(five)
	s.Arrivals[0].CostMicro, s.Arrivals[0].Told, s.Arrivals[0].FailPercent = 40_000, 40_000, 30
	s.Arrivals = append(s.Arrivals, sim.Arrival{Tenant: "heavy", Name: "free", Class: work("x.free"), At: time.Hour, Every: time.Minute, Count: 50, Run: time.Second, Told: models.Free})
	calm := l.live(s)
	s.Faults = sim.Faults{CrashEvery: 10 * time.Minute, DownFor: time.Minute, BrainEvery: 15 * time.Minute, UnclearApplies: 5, FailedApplies: 5, LostAnswers: 2}
	troubled := l.live(s)
	spent := func(r sim.Result) float64 { return float64(r.Counters["spent_heavy"]) / dollar }
	return []Figure{
		{Name: "a crash loop under a $1 budget: spent when it stops", Value: spent(loop), Goal: 1.01, Fails: 1.03, Format: "$%.2f", Note: fmt.Sprintf("%d attempts of 4 cents, said to cost 3", loop.Counters["paid_heavy"])},
		{Name: "8,000 tasks of 4 cents under a $5 budget, crashes and takeovers: spent", Value: spent(troubled), Goal: 5, Fails: 5, Format: "$%.2f", Note: fmt.Sprintf("%d crashes", troubled.Counters["crashes"])},
		{Name: "the same, calm: spent, at least", Value: spent(calm), Goal: 5, Fails: 4.96, Format: "$%.2f", More: true},
		{Name: "the same, calm: longest wait of its free work (others run 12 s)", Value: calm.Flows[len(calm.Flows)-1].Wait.Most.Seconds(), Goal: 18, Fails: 30, Format: "%.3f s"},
		{Name: "the same, calm: slots in use while anything is ready", Value: calm.Pools[0].Contended, Goal: 0.995, Fails: 0.95, Format: "%.4f", More: true},
	}
}
