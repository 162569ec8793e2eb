package engine

import (
	"nightshift/models"
	"nightshift/scheduler/board"
)

// neverArrived is how old a lease must be before a beat that does not list it counts.
const neverArrived = 2_000_000

// heartbeat renews leases on the board; nothing is committed unless a checkpoint came or a lease never arrived.
func (e *Engine) heartbeat(h *Heartbeat) (*Answer, error) {
	answer := &Answer{Beaten: &Beaten{Leases: make([]BeatenLease, len(h.Leases))}}
	var w *board.Worker
	if !h.Worker.IsZero() {
		var err error
		if w, err = e.worker(h.Worker, h.Session); err != nil {
			return nil, err
		}
		e.seen(w, h)
		answer.Beaten.Drain = w.State == models.WorkerDraining
	}
	listed := map[*board.Lease]bool{}
	for i := range h.Leases {
		beat := &h.Leases[i]
		lease := e.board.Leases[beat.Token]
		if lease == nil || w != nil && lease.Worker != w || !h.Task.IsZero() && (lease.Row().ID != h.Task || lease.Row().Env != h.Env) {
			answer.Beaten.Leases[i] = BeatenLease{Token: beat.Token}
			continue
		}
		if err := holdsSession(lease, h.Session); err != nil {
			return nil, err
		}
		listed[lease] = true
		answer.Beaten.Leases[i] = e.beat(lease, beat)
	}
	if h.All && w != nil {
		e.releaseMissing(w, listed)
	}
	return answer, nil
}

func (e *Engine) seen(w *board.Worker, h *Heartbeat) {
	w.LastSeen = max(w.LastSeen, e.now)
	if len(h.Utilization) > 0 {
		w.Utilization = h.Utilization
	}
	if h.Models != nil {
		row := w.Worker
		row.Models, row.AnyModel, row.UpdatedAt = h.Models, false, e.now
		e.board.PutWorker(row)
		e.b.plan.Workers = append(e.b.plan.Workers, row)
		e.dirty = true
	}
}

// beat renews one lease, charges what ran beyond the estimate, and tells the signals.
func (e *Engine) beat(lease *board.Lease, beat *Beat) BeatenLease {
	row := lease.Row()
	lease.Until = e.now.Add(models.Seconds(int(leaseSeconds(lease.Worker))))
	lease.Confirmed, lease.MissedAt = true, 0
	if len(beat.Progress) > 0 {
		lease.Progress = beat.Progress
		e.event(e.enlist(row), "task.progress")
	}
	if len(beat.Progress) > 0 || len(beat.Checkpoint) > 0 {
		e.keep(models.Progress{Env: row.Env, Task: row.ID, Progress: beat.Progress, Checkpoint: beat.Checkpoint})
	}
	e.accrue(lease)
	out := BeatenLease{Token: beat.Token, OK: true, Until: lease.Until}
	copied := *row
	out.Row = &copied
	if row.State == models.CancelRequested {
		out.Signals = append(out.Signals, "cancel")
		lease.CancelTold = true
	}
	if lease.SoftTold {
		out.Signals = append(out.Signals, "soft_timeout")
	}
	out.Sent = e.sent(lease, nil)
	return out
}

// accrue charges what an attempt has used so far, on top of what everybody is charged ahead.
func (e *Engine) accrue(lease *board.Lease) {
	if lease.Worker != nil {
		ahead := e.board.Clock(lease.Pool, lease.Kind).Ahead()
		e.board.Correct(lease, (ahead+e.used(lease))*lease.Rate)
	}
}

// releaseMissing gives back leases that never reached their worker: two beats at least half a heartbeat apart, the first
// at least two seconds after the grant, did not list them.
func (e *Engine) releaseMissing(w *board.Worker, listed map[*board.Lease]bool) {
	half := models.Instant(leaseSeconds(w)) * 1_000_000 / 6
	for _, lease := range append([]*board.Lease{}, w.Leases...) {
		switch {
		case listed[lease] || lease.Confirmed || e.now-lease.GrantedAt < neverArrived:
		case lease.MissedAt == 0:
			lease.MissedAt = e.now
		case e.now-lease.MissedAt >= half:
			e.b.notes.lost[lostNeverArrived]++
			e.release(lease, nil)
		}
	}
}
