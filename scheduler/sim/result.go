package sim

import (
	"encoding/hex"
	"slices"
	"time"
)

// Result is what came of it.
type Result struct {
	Hash       string // of the trace
	Trace      []string
	Shares     map[string]float64 // of the slot seconds given while every tenant had ready work
	Contended  time.Duration      // how long that was
	Waits      map[string]Wait
	Flows      []Flow  // an arrival each
	Pools      []Pool  // by name
	Lag        float64 // the worst of any two tenants while both had work, in units of c_f/w_f + c_g/w_g
	Jain       float64 // of share ÷ weight
	Inversions int64   // starts while a better task of the same line stood ready
	Makespan   time.Duration
	Lived      time.Duration
	Timeline   []Point
	Rates      []RateSeen // by key
	Yield      Yield
	Counters   map[string]int64
	Violations []string
}

// Wait is how long tasks waited from the moment nothing but capacity was missing to their first start. Those that never
// started waited until the end.
type Wait struct {
	Tasks                int
	Mean, P50, P99, Most time.Duration
}

// Flow is what came of an arrival.
type Flow struct {
	Name, Tenant string
	Tasks        int // that came
	Ended        int
	Refused      int
	Wait         Wait
	Deadlines    int // that were set
	Missed       int // work that ended later, or not at all
}

// Pool is how busy a pool was while the world lived.
type Pool struct {
	Name        string
	Slots       int64
	Utilization float64 // of its most used resource
	Contended   float64 // the same, while something stood ready
}

// Point is one piece of the timeline.
type Point struct {
	At     time.Duration // its end
	Busy   float64       // share of all slots in use, the mean
	Ready  int64         // tasks that stood ready at its end
	Parked int64
	Shares []float64 // of the slots in use, by tenant in their order
	Depths []int64   // ready tasks, by tenant
}

// finish sums up and looks whether anything acknowledged is missing.
func (w *World) finish() Result {
	r := &w.result
	r.Rates = w.ratesSeen()
	for _, j := range w.all {
		if j.acked {
			w.missing(j)
		}
		w.sum(j)
	}
	total := 0.0
	for _, t := range w.order {
		total += t.served
	}
	var fair []float64
	for _, t := range w.order {
		if total > 0 {
			r.Shares[t.Name] = t.served / total
			fair = append(fair, t.served/t.Weight)
		}
		r.Waits[t.Name] = waitOf(t.waits)
	}
	r.Jain = jain(fair)
	for _, f := range w.flows {
		f.Wait = waitOf(f.waits)
		r.Flows = append(r.Flows, f.Flow)
	}
	r.Pools = w.gauge.pools()
	r.Timeline = w.gauge.points
	if w.scenario.Lag {
		r.Lag = w.lag.worst(w.order)
	}
	r.Inversions = w.ranks.inversions
	r.Lived = w.now.Sub(dawn)
	if w.watch.last > 0 && len(w.all) > 0 {
		r.Makespan = w.watch.last.Sub(w.all[0].arrived)
	}
	r.Counters["tasks"] = int64(len(w.all))
	r.Counters["unfinished"] = int64(w.open)
	r.Counters["lines"], r.Counters["entries"] = int64(w.engine.Board().Lines()), int64(w.engine.Board().Entries())
	w.counted()
	r.Hash, r.Trace = hex.EncodeToString(w.hash.Sum(nil)), w.trace
	return *r
}

// sum adds a task to its flow.
func (w *World) sum(j *job) {
	f := j.flow
	f.Tasks++
	if j.ended {
		f.Ended++
	}
	if !j.started && j.freed != 0 && !j.ended {
		f.waits = append(f.waits, w.now.Sub(j.freed))
		j.tenant.waits = append(j.tenant.waits, w.now.Sub(j.freed))
	}
	if j.deadline == 0 || !j.acked {
		return
	}
	f.Deadlines++
	if j.done > j.deadline || j.done == 0 && w.now > j.deadline {
		f.Missed++
	}
}

// missing compares an acknowledged task with its row.
func (w *World) missing(j *job) {
	row, there := w.store.Task(j.ref())
	switch {
	case !there:
		w.violate("task %d was acknowledged and is not there", j.n)
	case row.State != j.state:
		w.violate("task %d is %s, the plans said %s", j.n, row.State, j.state)
	case w.scenario.Drains && !j.ended:
		w.violate("task %d is still %s (gate %q, remaining %d)", j.n, row.State, row.Gate, row.Remaining)
	}
}

func waitOf(waits []time.Duration) Wait {
	n := len(waits)
	if n == 0 {
		return Wait{}
	}
	slices.Sort(waits)
	sum := 0.0
	for _, d := range waits {
		sum += d.Seconds()
	}
	mean := time.Duration(sum / float64(n) * float64(time.Second))
	return Wait{Tasks: n, Mean: mean, P50: waits[n/2], P99: waits[n*99/100], Most: waits[n-1]}
}

// jain is 1 where all got alike, 1/n where one got everything.
func jain(x []float64) float64 {
	sum, squares := 0.0, 0.0
	for _, v := range x {
		sum += v
		squares += v * v
	}
	if squares == 0 {
		return 1
	}
	return sum * sum / (float64(len(x)) * squares)
}
