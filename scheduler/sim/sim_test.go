package sim_test

import (
	"math"
	"testing"
	"time"

	"nightshift/models"
	"nightshift/scheduler/sim"
)

func slots(n int32) models.Worker {
	return models.Worker{Slots: n, CPUMilli: int64(n) * 1000, MemoryMB: int64(n) * 1024}
}

// live runs a scenario and fails where the world broke.
func live(t *testing.T, s sim.Scenario) sim.Result {
	t.Helper()
	began := time.Now()
	r := sim.New(s).Run()
	t.Logf("lived %s in %s: %v, hash %.12s", r.Lived, time.Since(began).Round(time.Millisecond), r.Counters, r.Hash)
	for _, v := range r.Violations {
		t.Error(v)
	}
	return r
}

func contended(seed uint64) sim.Scenario {
	work := func(tenant string) sim.Arrival {
		return sim.Arrival{Tenant: tenant, Class: models.Class{Type: "x.work"}, Batch: 6_000, Run: time.Second, Spread: 0.5}
	}
	return sim.Scenario{
		Seed: seed, Tenants: []sim.Tenant{{Name: "alpha", Weight: 5}, {Name: "beta", Weight: 2}}, Until: 3 * time.Hour, Drains: true, Conserving: true,
		Workers:  []sim.Worker{{Name: "w", Count: 4, Worker: slots(8)}},
		Arrivals: []sim.Arrival{work("alpha"), work("beta")},
	}
}

func TestSharesFollowWeights(t *testing.T) {
	for seed := range uint64(3) {
		r := live(t, contended(seed))
		share := r.Shares["alpha"]
		t.Logf("seed %d: over %s alpha got %.4f of the slot seconds, beta %.4f; deserved %.4f", seed, r.Contended, share, r.Shares["beta"], 5.0/7)
		if math.Abs(share-5.0/7) > 0.02*5/7 {
			t.Errorf("alpha got %.4f, more than 2 %% from %.4f", share, 5.0/7)
		}
		if r.Contended < time.Minute {
			t.Errorf("both had work for %s only", r.Contended)
		}
		if n := r.Counters["succeeded"]; n != 12_000 {
			t.Errorf("%d tasks succeeded, want 12000", n)
		}
	}
}

// troubled has everything go wrong: deaths, lost answers, rolled back and unclear commits, changes of brain.
func troubled(seed uint64) sim.Scenario {
	s := sim.Scenario{
		Seed: seed, Until: 3 * time.Hour, Drains: true,
		Tenants: []sim.Tenant{{Name: "alpha", Weight: 5}, {Name: "beta", Weight: 2}, {Name: "gamma", Weight: 1}},
		Lanes:   []sim.Lane{{Tenant: "beta", Name: "sync", Kind: models.IO, MaxConcurrent: 3, TaskTypes: []string{"s.*"}}},
		Board:   sim.Board{Heads: 2, MostEntries: 60, Slice: 10},
		Workers: []sim.Worker{
			{Name: "small", Count: 3, Worker: slots(4)},
			{Name: "gpu", Count: 2, Worker: models.Worker{Pool: "gpu", Slots: 3, CPUMilli: 4000, MemoryMB: 8000, GPUs: []models.GPUCard{{VRAMMB: 24_000}, {VRAMMB: 8_000}}}},
		},
		Faults: sim.Faults{CrashEvery: 40 * time.Second, DownFor: 25 * time.Second, LostAnswers: 2, BrainEvery: 45 * time.Second, FailedApplies: 8, UnclearApplies: 8},
	}
	for i, tenant := range []string{"alpha", "beta", "gamma"} {
		s.Arrivals = append(s.Arrivals,
			sim.Arrival{Tenant: tenant, Class: models.Class{Type: "x.work", CPUMilli: 500}, Every: 10 * time.Second, Count: 12, Batch: 20, Run: 3 * time.Second, Spread: 0.9, FailPercent: 10},
			sim.Arrival{Tenant: tenant, Class: models.Class{Type: "x.train", GPU: 1, VRAMMB: 8_000}, At: time.Duration(i) * time.Second, Every: 30 * time.Second, Count: 4, Batch: 3, Run: 8 * time.Second, Spread: 0.5},
			sim.Arrival{Tenant: tenant, Class: models.Class{Type: "s.crawl"}, Every: 20 * time.Second, Count: 5, Batch: 8, Run: 2 * time.Second, LimitKey: "site", KeyLimit: 2},
			sim.Arrival{Tenant: tenant, Class: models.Class{Type: "x.chain"}, Every: 25 * time.Second, Count: 4, Batch: 5, Run: time.Second, Chain: true, FailPercent: 5},
		)
	}
	return s
}

func TestNothingIsLostWhateverBreaks(t *testing.T) {
	for seed := range uint64(6) {
		r := live(t, troubled(seed))
		for _, what := range []string{"crashes", "rebuilds", "failed_batches", "claims_lost", "parkings", "unparkings", "refills", "attempts_lost", "succeeded"} {
			if r.Counters[what] == 0 {
				t.Errorf("seed %d had no %s: it shows nothing of it", seed, what)
			}
		}
	}
}

func TestTheSameSeedGivesTheSameTrace(t *testing.T) {
	for _, scenario := range []func(uint64) sim.Scenario{contended, troubled} {
		a, b, other := live(t, scenario(7)), live(t, scenario(7)), live(t, scenario(8))
		if a.Hash != b.Hash {
			t.Errorf("one seed, two traces: %s and %s", a.Hash, b.Hash)
		}
		if a.Hash == other.Hash {
			t.Error("two seeds gave one trace")
		}
	}
}

// One tenant sends a hundred times as much as it is given; the others wait no longer than their share costs them.
func TestAFloodDelaysItsSenderAlone(t *testing.T) {
	work := func(tenant string, batch int) sim.Arrival {
		return sim.Arrival{Tenant: tenant, Class: models.Class{Type: "x.work"}, Every: 5 * time.Second, Count: 60, Batch: batch, Run: time.Second, Spread: 0.2}
	}
	world := func(flood int) sim.Scenario {
		return sim.Scenario{
			Seed: 3, Tenants: []sim.Tenant{{Name: "flood", Weight: 1}, {Name: "calm", Weight: 1}, {Name: "quiet", Weight: 1}},
			Workers:  []sim.Worker{{Name: "w", Count: 4, Worker: slots(4)}},
			Arrivals: []sim.Arrival{work("flood", flood), work("calm", 10), work("quiet", 10)}, Until: 310 * time.Second,
		}
	}
	before, during := live(t, world(10)), live(t, world(1_000))
	for _, tenant := range []string{"calm", "quiet"} {
		t.Logf("%s waited %+v, under the flood %+v", tenant, before.Waits[tenant], during.Waits[tenant])
		if during.Waits[tenant].P99 > 4*time.Second {
			t.Errorf("%s waited %s at the 99th percentile for a share of 5 slots and 10 tasks of a second", tenant, during.Waits[tenant].P99)
		}
	}
}

// Many tasks on one key never hide those that are free.
func TestAKeyHidesNothing(t *testing.T) {
	s := sim.Scenario{
		Seed: 1, Tenants: []sim.Tenant{{Name: "keyed", Weight: 1}}, Until: 20 * time.Second,
		Workers: []sim.Worker{{Name: "w", Worker: slots(12)}},
		Arrivals: []sim.Arrival{
			{Tenant: "keyed", Class: models.Class{Type: "x.work"}, Batch: 20_000, Run: time.Second, LimitKey: "one", KeyLimit: 1},
			{Tenant: "keyed", Class: models.Class{Type: "x.free"}, At: 5 * time.Second, Batch: 10, Run: time.Second},
			{Tenant: "keyed", Class: models.Class{Type: "x.work"}, At: 10 * time.Second, Batch: 10, Run: time.Second},
		},
	}
	r := live(t, s)
	if n := r.Counters["succeeded"]; n < 20+15 {
		t.Errorf("%d tasks succeeded, want the twenty free ones and one keyed a second", n)
	}
}

// What a tenant used of one pool is not held against it in another: the shares are counted per pool.
func TestPoolsAreFairEachOnItsOwn(t *testing.T) {
	train := models.Class{Type: "x.train", GPU: 1}
	work := func(tenant string) sim.Arrival {
		return sim.Arrival{Tenant: tenant, Class: models.Class{Type: "x.work"}, At: 11 * time.Minute, Batch: 4_000, Run: time.Second, Spread: 0.3}
	}
	r := live(t, sim.Scenario{
		Seed: 5, Tenants: []sim.Tenant{{Name: "trainer", Weight: 1}, {Name: "other", Weight: 1}}, Until: 2 * time.Hour, Drains: true,
		Workers: []sim.Worker{
			{Name: "cpu", Count: 2, Worker: models.Worker{Slots: 8, TaskTypes: []string{"x.work"}}},
			{Name: "gpu", Worker: models.Worker{Pool: "gpu", Slots: 2, TaskTypes: []string{"x.train"}, GPUs: []models.GPUCard{{VRAMMB: 24_000}, {VRAMMB: 24_000}}}},
		},
		Arrivals: []sim.Arrival{{Tenant: "trainer", Class: train, Batch: 120, Run: 10 * time.Second}, work("trainer"), work("other")},
	})
	t.Logf("after ten minutes alone on the GPUs the trainer got %.4f of the CPUs", r.Shares["trainer"])
	if math.Abs(r.Shares["trainer"]-0.5) > 0.01 || r.Contended < time.Minute {
		t.Errorf("the trainer got %.4f over %s, want half", r.Shares["trainer"], r.Contended)
	}
}

// A hundred thousand tasks stand in two lines at once; the board holds a few of them.
func TestALongNight(t *testing.T) {
	if testing.Short() {
		t.Skip("100,000 tasks")
	}
	s := contended(11)
	s.Conserving = false // checked at smaller scale
	for i := range s.Arrivals {
		s.Arrivals[i].Batch = 50_000
	}
	began := time.Now()
	r := live(t, s)
	rate := float64(r.Counters["tasks"]) / time.Since(began).Seconds()
	t.Logf("%.0f tasks a second of real time", rate)
	if n := r.Counters["succeeded"]; n != 100_000 {
		t.Errorf("%d tasks succeeded", n)
	}
}

func TestAnImpossibleScenarioIsSaid(t *testing.T) {
	for what, s := range map[string]sim.Scenario{
		"unknown tenant": {Arrivals: []sim.Arrival{{Tenant: "nobody"}}, Until: time.Second},
		"two alike":      {Tenants: []sim.Tenant{{Name: "a", Weight: 1}, {Name: "a", Weight: 1}}, Until: time.Second},
		"lane of nobody": {Lanes: []sim.Lane{{Tenant: "nobody", Name: "x"}}, Until: time.Second},
	} {
		if r := sim.New(s).Run(); len(r.Violations) != 1 {
			t.Errorf("%s: %v", what, r.Violations)
		}
	}
}
