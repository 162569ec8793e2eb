package sim_test

import (
	"testing"
	"time"

	"nightshift/models"
	"nightshift/scheduler/sim"
)

// Clients that wait for their answers: there are never more tasks in the world than clients.
func TestAClosedLoopWaitsForItsAnswers(t *testing.T) {
	r := live(t, sim.Scenario{
		Seed: 1, Tenants: []sim.Tenant{{Name: "a", Weight: 1}}, Until: time.Hour, Points: 60, Drains: true,
		Workers:  []sim.Worker{{Name: "w", Worker: slots(2)}},
		Arrivals: []sim.Arrival{{Tenant: "a", Class: models.Class{Type: "x"}, Closed: 3, Count: 90, Run: 10 * time.Second, Every: 5 * time.Second}},
	})
	if f := r.Flows[0]; f.Tasks != 90 || f.Ended != 90 || f.Wait.Most > 11*time.Second {
		t.Errorf("%+v", f)
	}
	for _, p := range r.Timeline {
		if p.Ready > 1 {
			t.Errorf("at %s %d tasks stood ready: two of the three run", p.At, p.Ready)
		}
	}
	if u := r.Pools[0].Utilization; u < 0.95 {
		t.Errorf("the pool was in use for %.2f of the time", u)
	}
}

// The same tasks come whatever happens to them: deaths of workers change when they end, not what they are.
func TestWhatComesDoesNotDependOnWhatHappens(t *testing.T) {
	world := func(crash time.Duration) sim.Scenario {
		return sim.Scenario{
			Seed: 6, Tenants: []sim.Tenant{{Name: "a", Weight: 1}}, Until: 3 * time.Hour, Keep: false,
			Workers:  []sim.Worker{{Name: "w", Count: 2, Worker: slots(4)}},
			Arrivals: []sim.Arrival{{Tenant: "a", Class: models.Class{Type: "x"}, Poisson: true, Every: time.Second, Count: 500, Run: 4 * time.Second, Shape: sim.Lognormal, Spread: 1}},
			Faults:   sim.Faults{CrashEvery: crash, DownFor: time.Second},
		}
	}
	calm, troubled := live(t, world(0)), live(t, world(time.Minute))
	if calm.Flows[0].Tasks != 500 || troubled.Flows[0].Tasks != 500 {
		t.Errorf("%d and %d tasks came", calm.Flows[0].Tasks, troubled.Flows[0].Tasks)
	}
	if calm.Hash == troubled.Hash || troubled.Counters["crashes"] == 0 {
		t.Error("no worker died")
	}
}

// A deadline counts as missed when the work ends later, and when it never ends.
func TestMissedDeadlinesAreCounted(t *testing.T) {
	item := func(run, deadline time.Duration) sim.Item { return sim.Item{Run: run, Deadline: deadline} }
	r := live(t, sim.Scenario{
		Seed: 1, Tenants: []sim.Tenant{{Name: "a", Weight: 1}}, Until: 10 * time.Minute,
		Workers: []sim.Worker{{Name: "w", Worker: slots(1)}},
		Arrivals: []sim.Arrival{{Tenant: "a", Class: models.Class{Type: "x"}, Exact: true, Hard: time.Hour, Items: []sim.Item{
			item(60*time.Second, 2*time.Minute), item(60*time.Second, time.Second), item(20*time.Minute, 5*time.Minute), item(time.Second, 0),
		}}},
	})
	if f := r.Flows[0]; f.Deadlines != 3 || f.Missed != 2 {
		t.Errorf("%d of %d deadlines were missed, want 2 of 3", f.Missed, f.Deadlines)
	}
}

// A worker that goes gives its work back; what it had counts no more.
func TestAWorkerThatGoesGivesItsWorkBack(t *testing.T) {
	r := live(t, sim.Scenario{
		Seed: 1, Tenants: []sim.Tenant{{Name: "a", Weight: 1}}, Until: time.Hour, Drains: true,
		Workers:  []sim.Worker{{Name: "stays", Worker: slots(1)}, {Name: "goes", To: 5 * time.Minute, Worker: slots(3)}},
		Arrivals: []sim.Arrival{{Tenant: "a", Class: models.Class{Type: "x"}, Batch: 60, Run: 30 * time.Second}},
	})
	// Ten rounds of three and ten of one in five minutes, then the rest by one: twenty rounds more.
	if r.Counters["succeeded"] != 60 || r.Makespan < 14*time.Minute || r.Makespan > 17*time.Minute || r.Pools[0].Slots != 1 {
		t.Errorf("%d ended in %s, %d slots are left", r.Counters["succeeded"], r.Makespan, r.Pools[0].Slots)
	}
}

// Graphs run in the order of their edges.
func TestAGraphTakesItsLongestPath(t *testing.T) {
	r := live(t, sim.Scenario{
		Seed: 1, Tenants: []sim.Tenant{{Name: "a", Weight: 1}}, Until: time.Hour, Drains: true,
		Workers: []sim.Worker{{Name: "w", Worker: slots(8)}},
		Arrivals: []sim.Arrival{{Tenant: "a", Class: models.Class{Type: "x"}, Estimated: true, Graph: []sim.Node{
			{Run: 10 * time.Second}, {Run: 30 * time.Second, After: []int{0}}, {Run: 5 * time.Second, After: []int{0}}, {Run: 10 * time.Second, After: []int{1, 2}},
		}}},
	})
	if extra := r.Makespan - 50*time.Second; extra < 0 || extra > 100*time.Millisecond {
		t.Errorf("it took %s, the longest path is 50 s", r.Makespan)
	}
}
