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
	"nightshift/scheduler/sim/trace"
)

// leastSlack is what a job with a deadline has beyond its own run time, at least.
const leastSlack = 12 * time.Hour

// deadlines lives through two months of a GPU cluster, a slot for each job. Every fourth job must have ended by a moment:
// its own run time after it came, and half a day, or what the trace's own deadline gives it where that is more. A share of
// jobs with deadlines must stay below the half that the ageing of the others leaves to them.
func deadlines(l *lab) (out []Figure) {
	t, ok := l.read("msr_itp2021_jobs")
	if !ok {
		return []Figure{skipped("deadline misses of recorded GPU jobs")}
	}
	items, tasks := dueJobs(&t)
	for _, n := range []int{330, 260} {
		machines := []int{n}
		edf := missed(tasks, rival.List(machines, tasks, rival.Earliest))
		none := missed(tasks, rival.List(machines, tasks, rival.First))
		for _, sigma := range []float64{0, 1} {
			goal := map[string]float64{"330/0": 0, "330/1": 2, "260/0": 0.05, "260/1": 5}[fmt.Sprintf("%d/%.0f", n, sigma)]
			r := l.live(dueWorld(items, n, sigma))
			told := "exact estimates"
			if sigma > 0 {
				told = "estimates wrong by lognormal σ = 1"
			}
			f := r.Flows[0]
			out = append(out, Figure{
				Name: fmt.Sprintf("deadline misses, %d slots, %s", n, told), Value: 100 * float64(f.Missed) / float64(max(1, f.Deadlines)),
				Goal: goal, Fails: max(goal, edf), Format: "%.3f %%", Note: fmt.Sprintf("pure EDF %.3f %%, no deadlines %.2f %%", edf, none),
			})
		}
	}
	return out
}

// dueMadeUp is the same in small, for where there is no trace: eight days of more work
// than forty slots can do.
func dueMadeUp(l *lab) []Figure {
	const n = 40
	rng := rand.New(rand.NewPCG(17, 4))
	var t trace.Trace
	for at := time.Duration(0); at < 8*24*time.Hour; at += time.Duration(rng.ExpFloat64() * float64(4*time.Minute)) {
		run := time.Duration(math.Exp(1.2*rng.NormFloat64()) * float64(90*time.Minute))
		t.Tasks = append(t.Tasks, trace.Task{Item: sim.Item{At: at.Truncate(time.Millisecond), Run: min(run, 48*time.Hour).Truncate(time.Millisecond)}})
	}
	items, tasks := dueJobs(&t)
	edf, none := missed(tasks, rival.List([]int{n}, tasks, rival.Earliest)), missed(tasks, rival.List([]int{n}, tasks, rival.First))
	f := l.live(dueWorld(items, n, 0)).Flows[0]
	return []Figure{{
		Name: fmt.Sprintf("deadline misses, made-up jobs, %d slots", n), Value: 100 * float64(f.Missed) / float64(max(1, f.Deadlines)), Goal: 0.05, Fails: max(0.05, edf),
		Format: "%.3f %%", Note: fmt.Sprintf("pure EDF %.3f %%, no deadlines %.2f %%", edf, none),
	}}
}

// dueJobs gives every fourth job its deadline.
func dueJobs(t *trace.Trace) (items []sim.Item, tasks []rival.Task) {
	for i := range t.Tasks {
		item := t.Tasks[i].Item
		due := item.Run + max(leastSlack, item.Deadline)
		item.Deadline = 0
		task := rival.Task{At: item.At, Run: item.Run}
		if i%4 == 0 {
			item.Deadline, task.Deadline = due, item.At+due
		}
		items, tasks = append(items, item), append(tasks, task)
	}
	return items, tasks
}

func dueWorld(items []sim.Item, n int, sigma float64) sim.Scenario {
	worker := slots(int32(n / 10))
	worker.LeaseSeconds = 3600
	return sim.Scenario{
		Seed: 21, Until: 120 * 24 * time.Hour, Pace: time.Minute, Tenants: []sim.Tenant{{Name: "cluster", Weight: 1}},
		Workers:  []sim.Worker{{Name: "w", Count: 10, Worker: worker}},
		Arrivals: []sim.Arrival{{Tenant: "cluster", Class: work("x.train"), Items: items, Exact: true, Wrong: sigma, Hard: 90 * 24 * time.Hour}},
	}
}

// missed is how many percent of the deadlines were.
func missed(tasks []rival.Task, ran []rival.Ran) float64 {
	n, of := 0, 0
	for i, task := range tasks {
		if task.Deadline == 0 {
			continue
		}
		if of++; ran[i].End > task.Deadline {
			n++
		}
	}
	return 100 * float64(n) / float64(max(1, of))
}

// workflows runs task graphs, each alone on so many slots: five made up, and seven recorded ones.
func workflows(l *lab) []Figure {
	out := l.graphs("5 made-up graphs", madeUpGraphs())
	t, ok := l.read("wfinstances_7dags")
	if !ok {
		return append(out, skipped("workflow makespan ÷ bound, recorded graphs"))
	}
	return append(out, l.graphs(fmt.Sprintf("%d recorded graphs", len(t.Arrivals())), t.Arrivals())...)
}

// madeUpGraphs are of two hundred tasks each, which wait for up to three of the thirty before them.
func madeUpGraphs() (out []sim.Arrival) {
	rng := rand.New(rand.NewPCG(8, 8))
	for n := range 5 {
		a := sim.Arrival{Tenant: fmt.Sprintf("graph-%d", n)}
		for i := range 200 {
			item := sim.Item{Run: time.Duration(1+59*rng.Float64()) * time.Second, Group: 1}
			for range rng.IntN(4) {
				if before := i - 1 - rng.IntN(30); before >= 0 && !slices.Contains(item.After, before) {
					item.After = append(item.After, before)
				}
			}
			a.Items = append(a.Items, item)
		}
		out = append(out, a)
	}
	return out
}

// onTheWay is what messages to and from workers add to a makespan, at most; rivals need none.
const onTheWay = 0.002

func (l *lab) graphs(what string, arrivals []sim.Arrival) (out []Figure) {
	for _, machines := range []int{8, 32} {
		mine, theirs, worst, behind := 0.0, 0.0, "", 0.0
		for _, a := range arrivals {
			tasks := make([]rival.Task, len(a.Items))
			for i, item := range a.Items {
				tasks[i] = rival.Task{Run: item.Run, After: item.After}
			}
			bound := rival.Bound(tasks, machines)
			one := make([]int, machines)
			for i := range one {
				one[i] = 1
			}
			listed := time.Duration(0)
			for _, ran := range rival.List(one, tasks, rival.Longest(tasks)) {
				listed = max(listed, ran.End)
			}
			made := l.makespan(a, machines)
			mine += made.Seconds() / bound.Seconds() / float64(len(arrivals))
			theirs += listed.Seconds() / bound.Seconds() / float64(len(arrivals))
			if more := made.Seconds() / listed.Seconds(); more > behind {
				behind, worst = more, a.Tenant
			}
		}
		out = append(out, Figure{
			Name: fmt.Sprintf("workflow makespan ÷ bound, %s, %d slots", what, machines), Value: mine, Goal: theirs * (1 + onTheWay), Fails: 2 - 1/float64(machines), Format: "%.4f",
			Note: fmt.Sprintf("longest path first %.4f; worst against it %.3f (%s)", theirs, behind, worst),
		})
	}
	return out
}

// makespan runs a task graph alone, its run times told.
func (l *lab) makespan(a sim.Arrival, machines int) time.Duration {
	a.Exact, a.Class, a.Hard = true, models.Class{Type: "x.step"}, 30*24*time.Hour
	r := l.live(sim.Scenario{
		Seed: 4, Until: 60 * 24 * time.Hour, Pace: 10 * time.Second, Tenants: []sim.Tenant{{Name: a.Tenant, Weight: 1}},
		Workers: []sim.Worker{{Name: "w", Worker: slots(int32(machines))}}, Arrivals: []sim.Arrival{a}, Drains: true,
	})
	return r.Makespan
}
