package figures

import (
	"fmt"
	"time"

	"nightshift/models"
	"nightshift/scheduler/sim"
)

func at(n int64) *int64 { return &n }

// limits floods slots with the work of a tenant that may use few of them, for each gate that its limits make: nothing ever
// starts beyond the limit, nobody else waits for it, and no slot stands idle that somebody could use.
func limits(l *lab) []Figure {
	out := concurrencyQuota(l)
	out = append(out, cardQuota(l)...)
	out = append(out, tokenQuota(l)...)
	out = append(out, budgets(l)...)
	return append(out, typeLimits(l)...)
}

// flooded has a heavy tenant flood 16 slots beside another one that does the same, and a third that sends a task a minute.
func flooded(heavy sim.Tenant) sim.Scenario {
	heavy.Name, heavy.Weight = "heavy", 9
	return sim.Scenario{
		Seed: 31, Until: 2 * time.Hour, Tenants: []sim.Tenant{heavy, {Name: "other", Weight: 1}, {Name: "rare", Weight: 1}},
		Workers: []sim.Worker{{Name: "w", Count: 2, Worker: slots(8)}},
		Arrivals: []sim.Arrival{
			{Tenant: "heavy", Class: work("x.heavy"), Batch: 8_000, Run: 12 * time.Second, Spread: 0.5},
			{Tenant: "other", Class: work("x.other"), Batch: 8_000, Run: 12 * time.Second, Spread: 0.5},
			{Tenant: "rare", Class: work("x.rare"), Every: time.Minute, Count: 100, Run: 5 * time.Second},
		},
	}
}

func concurrencyQuota(l *lab) []Figure {
	s := flooded(sim.Tenant{Quotas: models.Quotas{MaxConcurrent: at(6)}})
	s.Faults = sim.Faults{CrashEvery: 20 * time.Minute, DownFor: time.Minute, BrainEvery: 15 * time.Minute, UnclearApplies: 5, FailedApplies: 5, LostAnswers: 2}
	r := l.live(s)
	calm := l.live(flooded(sim.Tenant{Quotas: models.Quotas{MaxConcurrent: at(6)}}))
	return []Figure{
		{Name: "tenant at max_concurrent 6, crashes and takeovers: most that ran at once", Value: float64(r.Counters["most_live_heavy"]), Goal: 6, Fails: 6, Format: "%.0f", Note: fmt.Sprintf("%d starts", r.Counters["starts"])},
		{Name: "the same, calm: slots in use while anything is ready", Value: calm.Pools[0].Contended, Goal: 0.995, Fails: 0.95, Format: "%.4f", More: true},
		{Name: "the same, calm: longest wait of a third tenant's task, ÷ a task", Value: calm.Flows[2].Wait.Most.Seconds() / 18, Goal: 1, Fails: 3, Format: "%.2f"},
	}
}

// cardQuota has a tenant flood four cards of which it may hold two, and send CPU work to the same workers.
func cardQuota(l *lab) []Figure {
	r := l.live(sim.Scenario{
		Seed: 32, Until: 2 * time.Hour,
		Tenants: []sim.Tenant{{Name: "heavy", Weight: 9, Quotas: models.Quotas{MaxGPUs: at(2), MaxVRAMMB: at(40_000)}}, {Name: "other", Weight: 1}},
		Workers: []sim.Worker{{Name: "g", Worker: models.Worker{Pool: "gpu", Slots: 16, CPUMilli: 16_000, GPUs: []models.GPUCard{{VRAMMB: 24_000}, {VRAMMB: 24_000}, {VRAMMB: 24_000}, {VRAMMB: 24_000}}}}},
		Arrivals: []sim.Arrival{
			{Tenant: "heavy", Class: models.Class{Type: "x.train", GPU: 1, VRAMMB: 20_000}, Batch: 1_200, Run: 20 * time.Second, Spread: 0.5},
			{Tenant: "heavy", Name: "cpu", Class: work("x.clean"), At: time.Minute, Every: 20 * time.Second, Count: 300, Run: 10 * time.Second},
			{Tenant: "other", Class: models.Class{Type: "x.infer", GPU: 1, VRAMMB: 20_000}, Batch: 700, Run: 20 * time.Second, Spread: 0.5},
		},
	})
	waits := r.Flows[1].Wait
	return []Figure{
		{Name: "tenant at max_gpus 2 of 4: most cards it held", Value: float64(r.Counters["most_cards_heavy"]), Goal: 2, Fails: 2, Format: "%.0f"},
		{Name: "the same: longest wait of its CPU work", Value: waits.Most.Seconds(), Goal: 0.5, Fails: 20, Format: "%.3f s", Note: fmt.Sprintf("%d tasks", waits.Tasks)},
		{Name: "the same: most cards the other one held", Value: float64(r.Counters["most_cards_other"]), Goal: 2, Fails: 1, Format: "%.0f", More: true},
	}
}

// tokenQuota lets a tenant have 6,000 tokens a minute of work that wants twenty times as many.
func tokenQuota(l *lab) []Figure {
	const rate, hours = 6_000, 2
	s := flooded(sim.Tenant{Quotas: models.Quotas{TokensPerMinute: at(rate)}})
	s.Arrivals[0].Class.Tokens, s.Arrivals[0].Tokens = true, 700
	s.Arrivals[1].Batch = 12_000
	r := l.live(s)
	allowed := float64(rate*60*hours + rate + 700) // what comes back, what stood ready, and one task of debt
	return []Figure{
		{Name: "6,000 tokens a minute: started ÷ allowed", Value: float64(r.Counters["tokens_heavy"]) / allowed, Goal: 1, Fails: 1, Format: "%.4f"},
		{Name: "the same: started ÷ allowed, at least", Value: float64(r.Counters["tokens_heavy"]) / allowed, Goal: 0.99, Fails: 0.9, Format: "%.4f", More: true},
		{Name: "the same: slots in use while anything is ready", Value: r.Pools[0].Contended, Goal: 0.995, Fails: 0.95, Format: "%.4f", More: true},
	}
}

// typeLimits lets three of a type run, and none of another.
func typeLimits(l *lab) []Figure {
	s := flooded(sim.Tenant{Types: []models.TaskType{{Type: "x.heavy", MaxConcurrent: at(3)}, {Type: "x.off", Paused: true}}})
	s.Arrivals = append(s.Arrivals, sim.Arrival{Tenant: "heavy", Name: "off", Class: work("x.off"), Batch: 50, Run: time.Second})
	r := l.live(s)
	return []Figure{
		{Name: "task type at max_concurrent 3: most that ran at once", Value: float64(r.Counters["most_live_x.heavy_heavy"]), Goal: 3, Fails: 3, Format: "%.0f"},
		{Name: "paused task type: tasks that started", Value: float64(r.Counters["most_live_x.off_heavy"]), Goal: 0, Fails: 0, Format: "%.0f"},
	}
}
