package figures

import (
	"fmt"
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
		return []Figure{skipped("deadline misses on recorded GPU jobs")}
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

// workflows runs seven recorded task graphs, each alone on so many slots.
func workflows(l *lab) (out []Figure) {
	t, ok := l.read("wfinstances_7dags")
	if !ok {
		return []Figure{skipped("makespan of recorded task graphs ÷ bound")}
	}
	for _, machines := range []int{8, 32} {
		mine, theirs, worst := 0.0, 0.0, ""
		behind, arrivals := 0.0, t.Arrivals()
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
			Name: fmt.Sprintf("workflow makespan ÷ bound, mean of 7 graphs, %d slots", machines), Value: mine, Goal: theirs * 1.001, Fails: 2 - 1/float64(machines), Format: "%.4f",
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
