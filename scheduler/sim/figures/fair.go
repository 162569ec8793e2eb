package figures

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"nightshift/models"
	"nightshift/scheduler/sim"
	"nightshift/scheduler/sim/rival"
)

// slots is a worker with so many, and room enough for anything that names no resource.
func slots(n int32) models.Worker {
	return models.Worker{Slots: n, CPUMilli: int64(n) * 1000, MemoryMB: int64(n) * 1024}
}

func work(kind string) models.Class { return models.Class{Type: kind} }

// serviceLag lets three tenants with unlike weights and tasks of unlike length compete, whose run times are within a half
// of what the callers tell; or nobody tells anything.
func serviceLag(l *lab) (out []Figure) {
	for _, c := range []struct {
		slots int32
		goal  float64
	}{{1, 1.0}, {16, 1.2}, {128, 2.5}} {
		told, untold := l.lag(c.slots, true), l.lag(c.slots, false)
		out = append(out, Figure{
			Name: fmt.Sprintf("service lag, %d slots, in c_f/w_f + c_g/w_g", c.slots), Value: max(told, untold), Goal: c.goal, Fails: float64(c.slots) + 1, Format: "%.2f",
			Note: fmt.Sprintf("%.2f with the usual run times told", told),
		})
	}
	return out
}

func (l *lab) lag(n int32, told bool) float64 {
	turns := 400 + 12*int(n)
	arrival := func(tenant string, mean time.Duration, n int) sim.Arrival {
		return sim.Arrival{Tenant: tenant, Class: work("x." + tenant), Batch: n, Run: mean, Spread: 0.5, Estimated: told}
	}
	return l.live(sim.Scenario{
		Seed: 11, Lag: true, Until: 48 * time.Hour,
		Tenants:  []sim.Tenant{{Name: "heavy", Weight: 5}, {Name: "middle", Weight: 2}, {Name: "light", Weight: 1}},
		Workers:  []sim.Worker{{Name: "w", Worker: slots(n)}},
		Arrivals: []sim.Arrival{arrival("heavy", 20*time.Second, 2*turns), arrival("middle", 5*time.Second, 3*turns), arrival("light", time.Minute, turns/6)},
	}).Lag
}

// twoPools lets one tenant have the GPUs for itself before it competes on the CPUs.
func twoPools(l *lab) []Figure {
	on := func(tenant string, n int) sim.Arrival {
		return sim.Arrival{Tenant: tenant, Class: work("x.work"), At: 16 * time.Minute, Batch: n, Run: time.Second, Spread: 0.3}
	}
	r := l.live(sim.Scenario{
		Seed: 5, Until: 3 * time.Hour,
		Tenants: []sim.Tenant{{Name: "trainer", Weight: 1}, {Name: "other", Weight: 1}, {Name: "third", Weight: 2}},
		Workers: []sim.Worker{
			{Name: "cpu", Count: 2, Worker: models.Worker{Slots: 8, TaskTypes: []string{"x.work"}}},
			{Name: "gpu", Worker: models.Worker{Pool: "gpu", Slots: 2, TaskTypes: []string{"x.train"}, GPUs: []models.GPUCard{{VRAMMB: 24_000}, {VRAMMB: 24_000}}}},
		},
		Arrivals: []sim.Arrival{
			{Tenant: "trainer", Class: models.Class{Type: "x.train", GPU: 1}, Batch: 180, Run: 10 * time.Second},
			on("trainer", 2_000), on("other", 2_000), on("third", 4_000),
		},
	})
	worst := 0.0
	for tenant, deserved := range map[string]float64{"trainer": 0.25, "other": 0.25, "third": 0.5} { // any order: a maximum
		worst = max(worst, math.Abs(r.Shares[tenant]-deserved)/deserved)
	}
	return []Figure{{Name: "two pools: worst share on the CPUs, off its weight", Value: 100 * worst, Goal: 2, Fails: 90, Format: "%.2f %%"}}
}

// evenShares has twenty tenants with weights from 1 to 5 at work all the time.
func evenShares(l *lab) []Figure {
	s := sim.Scenario{Seed: 2, Until: 6 * time.Hour, Workers: []sim.Worker{{Name: "w", Count: 4, Worker: slots(8)}}}
	for n := range 20 {
		weight := float64(1 + n%5)
		name := fmt.Sprintf("t%02d", n)
		s.Tenants = append(s.Tenants, sim.Tenant{Name: name, Weight: weight})
		run := time.Duration(1+n%3) * time.Second
		s.Arrivals = append(s.Arrivals, sim.Arrival{Tenant: name, Class: work("x.work"), Batch: int(weight) * 360 / (1 + n%3), Run: run, Shape: sim.Exponential})
	}
	r := l.live(s)
	return []Figure{{Name: "Jain index of share ÷ weight, 20 tenants", Value: r.Jain, Goal: 0.9995, Fails: 0.99, Format: "%.5f", More: true}}
}

// stream draws tasks that come by chance, so that the same ones can be given to the engine and to a rival.
func stream(rng *rand.Rand, every, run time.Duration, until time.Duration) (items []sim.Item) {
	for at := time.Duration(0); ; {
		at += time.Duration(rng.ExpFloat64() * float64(every))
		if at > until {
			return items
		}
		at = at.Truncate(time.Millisecond)
		items = append(items, sim.Item{At: at, Run: time.Duration((0.8 + 0.4*rng.Float64()) * float64(run)).Truncate(time.Millisecond)})
	}
}

// flood has one tenant send a hundred times what it is given; the others' share would do for them.
func flood(l *lab) []Figure {
	rng := rand.New(rand.NewPCG(3, 1))
	const run = time.Second
	feeds := [][]sim.Item{nil, stream(rng, 200*time.Millisecond, run, 5*time.Minute), stream(rng, 200*time.Millisecond, run, 5*time.Minute)}
	for second := range 300 { // its share is 16/3 tasks a second
		for range 533 / 8 {
			feeds[0] = append(feeds[0], sim.Item{At: time.Duration(second) * time.Second, Run: run})
		}
	}
	r, fair := l.contest(feeds, []float64{1, 1, 1}, 16, 310*time.Second)
	worst := 0.0
	for i := 1; i < 3; i++ {
		got := r.Flows[i].Wait.P99 - 1200*time.Millisecond
		worst = max(worst, got.Seconds()/max(fair[i].P99.Seconds(), run.Seconds()))
	}
	note := fmt.Sprintf("p99 %.1f and %.1f s, fair %.1f and %.1f s", r.Flows[1].Wait.P99.Seconds(), r.Flows[2].Wait.P99.Seconds(), fair[1].P99.Seconds(), fair[2].P99.Seconds())
	return []Figure{{Name: "flood: others' (p99 wait − 1 task) ÷ fair wait", Value: worst, Goal: 1.1, Fails: 2, Format: "%.2f", Note: note}}
}

// contest gives tasks to the engine and to a fluid and tells the waits in both.
func (l *lab) contest(feeds [][]sim.Item, weights []float64, n int32, until time.Duration) (sim.Result, []sim.Wait) {
	s := sim.Scenario{Seed: 3, Until: until, Workers: []sim.Worker{{Name: "w", Count: int(n) / 4, Worker: slots(4)}}}
	var tasks []rival.Task
	for i, items := range feeds {
		name := fmt.Sprintf("t%d", i)
		s.Tenants = append(s.Tenants, sim.Tenant{Name: name, Weight: weights[i]})
		s.Arrivals = append(s.Arrivals, sim.Arrival{Tenant: name, Class: work("x.work"), Items: items})
		for _, item := range items {
			tasks = append(tasks, rival.Task{At: item.At, Run: item.Run, Tenant: i})
		}
	}
	waits := make([][]time.Duration, len(feeds))
	for i, ran := range rival.Fluid(int(n), weights, tasks) {
		if ran.Start >= 0 {
			waits[tasks[i].Tenant] = append(waits[tasks[i].Tenant], ran.Start-tasks[i].At)
		}
	}
	fair := make([]sim.Wait, len(feeds))
	for i, w := range waits {
		if slices.Sort(w); len(w) > 0 {
			fair[i] = sim.Wait{Tasks: len(w), P50: w[len(w)/2], P99: w[len(w)*99/100], Most: w[len(w)-1]}
		}
	}
	return l.live(s), fair
}

// fairWaits overloads the slots for two hours, with tasks of all priorities, and looks how long the unluckiest task of
// each tenant waited.
func fairWaits(l *lab) []Figure {
	rng := rand.New(rand.NewPCG(9, 2))
	weights := []float64{4, 2, 1, 1}
	var feeds, ranked [][]sim.Item
	for _, every := range []time.Duration{5 * time.Second, 6 * time.Second, 16 * time.Second, 60 * time.Second} {
		feeds = append(feeds, stream(rng, every, time.Minute, 2*time.Hour))
	}
	for _, items := range feeds {
		items = slices.Clone(items)
		for i := range items {
			items[i].Priority = int16(rng.IntN(101))
		}
		ranked = append(ranked, items)
	}
	r, fair := l.contest(feeds, weights, 16, 24*time.Hour)
	mixed, _ := l.contest(ranked, weights, 16, 24*time.Hour)
	plain, ages := 0.0, 0.0
	for i := range weights {
		floor := fair[i].Most.Seconds() + 72 // its own share and one task
		plain = max(plain, r.Flows[i].Wait.Most.Seconds()/floor)
		ages = max(ages, mixed.Flows[i].Wait.Most.Seconds()/(floor+100*60)) // a point of priority is worth a minute
	}
	return []Figure{
		{Name: "longest wait ÷ (fair wait + 1 task)", Value: plain, Goal: 2, Fails: 10, Format: "%.2f"},
		{Name: "longest wait ÷ (fair wait + 1 task + 100 min), priorities 0 to 100", Value: ages, Goal: 2, Fails: 10, Format: "%.2f"},
		{Name: "order inversions inside one tenant and class", Value: float64(r.Inversions + mixed.Inversions), Format: "%.0f", Note: fmt.Sprintf("of %d starts", int(r.Counters["starts"]+mixed.Counters["starts"]))},
	}
}
