package engine

import (
	"nightshift/models"
	"nightshift/scheduler/board"
)

// announce tells that another brain decides, in the first batch that it commits.
func (e *Engine) announce() {
	if !e.announced {
		e.b.plan.Events = append(e.b.plan.Events, models.Event{Name: "brain.changed", At: e.now, Reason: e.cfg.Address})
	}
}

// noteSilence tells of workers that gave no sign of life for as long as their leases last, once until they do. One that waits
// in a claim is there.
func (e *Engine) noteSilence() {
	silent, waits := map[models.ID]bool{}, map[models.ID]bool{}
	for _, p := range e.claims {
		waits[p.worker] = true
	}
	for _, w := range e.workers() {
		if last := max(w.LastSeen, e.since); waits[w.ID] || e.now-last <= models.Instant(leaseSeconds(w))*1_000_000 {
			continue
		}
		silent[w.ID] = true
		if !e.silent[w.ID] {
			e.workerEvent(w, "worker.silent")
		}
	}
	e.silent = silent
}

// there says that a worker takes work, as far as anybody knows: the slots of one that has been silent for as long as its leases
// last are no capacity, because it may have died.
func (e *Engine) there(w *board.Worker) bool {
	return w.State == models.WorkerActive && !e.silent[w.ID]
}
