package sim

import (
	"encoding/hex"
	"slices"
	"time"

	"nightshift/models"
)

// finish sums up and looks whether anything acknowledged is missing.
func (w *World) finish() Result {
	r := &w.result
	for _, j := range w.all {
		if j.acked {
			w.missing(j)
		}
	}
	total := 0.0
	for _, t := range w.order {
		total += t.served
	}
	for _, t := range w.order {
		if total > 0 {
			r.Shares[t.Name] = t.served / total
		}
		r.Waits[t.Name] = waitOf(t.waits)
	}
	r.Lived = w.now.Sub(dawn)
	if w.watch.last > 0 && len(w.all) > 0 {
		r.Makespan = w.watch.last.Sub(w.all[0].arrived)
	}
	r.Counters["tasks"] = int64(len(w.all))
	r.Counters["unfinished"] = int64(w.open)
	w.counted()
	r.Hash, r.Trace = hex.EncodeToString(w.hash.Sum(nil)), w.trace
	return *r
}

// missing compares an acknowledged task with its row.
func (w *World) missing(j *job) {
	row, there := w.store.Task(models.TaskRef{Env: j.tenant.env, ID: j.row.ID})
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
	if len(waits) == 0 {
		return Wait{}
	}
	slices.Sort(waits)
	return Wait{P50: waits[len(waits)/2], P99: waits[len(waits)*99/100], Most: waits[len(waits)-1]}
}
