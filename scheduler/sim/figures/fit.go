package figures

import (
	"fmt"
	"math/rand/v2"
	"time"

	"nightshift/models"
	"nightshift/scheduler/sim"
	"nightshift/scheduler/sim/rival"
)

// keyed puts many tasks on one concurrency key before ten that need none.
func keyed(l *lab) []Figure {
	s := keyScenario(100_000)
	r := l.live(s)
	wait := max(r.Flows[1].Wait.Most, r.Flows[2].Wait.Most)
	return []Figure{{Name: "ten free tasks behind 100,000 on one key: longest wait", Value: wait.Seconds(), Goal: 1, Fails: 10, Format: "%.3f s", Note: fmt.Sprintf("%d of 20 started", r.Flows[1].Wait.Tasks+r.Flows[2].Wait.Tasks)}}
}

func keyScenario(n int) sim.Scenario {
	return sim.Scenario{
		Seed: 1, Tenants: []sim.Tenant{{Name: "keyed", Weight: 1}}, Until: 30 * time.Second,
		Workers: []sim.Worker{{Name: "w", Worker: slots(12)}},
		Arrivals: []sim.Arrival{
			{Tenant: "keyed", Class: work("x.work"), Batch: n, Run: time.Second, LimitKey: "one", KeyLimit: 1},
			{Tenant: "keyed", Name: "other class", Class: work("x.free"), At: 5 * time.Second, Batch: 10, Run: time.Second},
			{Tenant: "keyed", Name: "same class", Class: work("x.work"), At: 10 * time.Second, Batch: 10, Run: time.Second},
		},
	}
}

// classes has one tenant ask for ten thousand different things at once.
func classes(l *lab) []Figure {
	s := sim.Scenario{Seed: 1, Tenants: []sim.Tenant{{Name: "varied", Weight: 1}}, Until: time.Minute, Workers: []sim.Worker{{Name: "w", Worker: models.Worker{Slots: 1, CPUMilli: 1}}}}
	var items []sim.Item
	for n := range 10_000 {
		items = append(items, sim.Item{At: time.Duration(n) * time.Millisecond, Run: time.Second, Class: models.Class{Type: "x.work", CPUMilli: int64(100 + n)}})
	}
	s.Arrivals = []sim.Arrival{{Tenant: "varied", Class: work("x.work"), Items: items}}
	r := l.live(s)
	return []Figure{
		{Name: "10,000 requirements: answered too_many_classes", Value: float64(r.Counters["refused_too_many_classes"]), Goal: 9_800, Fails: 9_000, Format: "%.0f", More: true},
		{Name: "10,000 requirements: lines on the board", Value: float64(r.Counters["lines"]), Goal: 200, Fails: 1_000, Format: "%.0f"},
	}
}

// wholeWorkers saturates ten workers of eight CPUs with small tasks for eighty hours; every two hours or so comes a task
// that needs a whole worker.
func wholeWorkers(l *lab) []Figure {
	const workers, cpus = 10, 8
	hours := 80 * time.Hour
	if l.quick {
		hours = 12 * time.Hour
	}
	rng := rand.New(rand.NewPCG(7, 7))
	var whole []sim.Item
	for _, item := range stream(rng, 2*time.Hour, 20*time.Minute, hours-4*time.Hour) {
		item.Estimate = item.Run
		whole = append(whole, item)
	}
	var small []sim.Item
	for range int(hours.Minutes()/10) * workers * cpus {
		run := time.Duration((0.5 + rng.Float64()) * float64(10*time.Minute)).Truncate(time.Millisecond)
		small = append(small, sim.Item{Run: run})
	}
	r := l.live(sim.Scenario{
		Seed: 7, Until: hours, Pace: 10 * time.Second, Tenants: []sim.Tenant{{Name: "many", Weight: 9}, {Name: "whole", Weight: 1}},
		Workers: []sim.Worker{{Name: "w", Count: workers, Worker: models.Worker{Slots: cpus, CPUMilli: 1000 * cpus, MemoryMB: 1024 * cpus, LeaseSeconds: 300}}},
		Arrivals: []sim.Arrival{
			{Tenant: "many", Class: models.Class{Type: "x.small", CPUMilli: 1000}, Items: small},
			{Tenant: "whole", Class: models.Class{Type: "x.whole", CPUMilli: 1000 * cpus}, Items: whole},
		},
	})
	plain := skipping(small, whole, workers, cpus, hours)
	return []Figure{
		{Name: "longest whole-worker wait", Value: r.Flows[1].Wait.Most.Hours(), Goal: 1.2, Fails: plain.Hours() / 2, Format: "%.2f h", Note: fmt.Sprintf("plain skipping: %.1f h", plain.Hours())},
		{Name: "utilisation beside whole-worker tasks", Value: r.Pools[0].Contended, Goal: 0.97, Fails: 0.9, Format: "%.4f", More: true},
	}
}

// skipping is the longest wait of a whole-worker task, until the end, where tasks that do not fit are passed over.
func skipping(small, whole []sim.Item, workers, cpus int, until time.Duration) (longest time.Duration) {
	var tasks []rival.Task
	for _, item := range whole {
		tasks = append(tasks, rival.Task{At: item.At, Run: item.Run, Needs: cpus})
	}
	for _, item := range small {
		tasks = append(tasks, rival.Task{At: item.At, Run: item.Run})
	}
	room := make([]int, workers)
	for i := range room {
		room[i] = cpus
	}
	for i, ran := range rival.List(room, tasks, rival.First)[:len(whole)] {
		longest = max(longest, min(ran.Start, until)-tasks[i].At)
	}
	return longest
}
