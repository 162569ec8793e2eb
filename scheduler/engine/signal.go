package engine

import (
	"encoding/json"
	"slices"

	"nightshift/models"
	"nightshift/scheduler/board"
)

// Signal sends a running task something by name.
type Signal struct {
	Env  int32           `json:"env"`
	Task models.ID       `json:"task"`
	Name string          `json:"name"`
	Data json.RawMessage `json:"data,omitempty"`
}

// mostSignals is how many may wait for one attempt to be told.
const mostSignals = 100

// signal keeps a signal until the worker is told: once, in its next beat or claim.
func (e *Engine) signal(cmd *Command) (*Answer, error) {
	x := cmd.Signal
	row := e.peek(models.TaskRef{Env: x.Env, ID: x.Task})
	if row == nil || row.State == models.Staged {
		return nil, models.Errorf(models.NotFound, "there is no task %s", x.Task.Text(models.TaskPrefix))
	}
	copied := *row
	answer := &Answer{Task: &copied}
	if _, done := e.b.facts.Done[cmd.ID]; done {
		return answer, nil
	}
	lease := e.board.Leases[row.Token]
	switch {
	case row.State != models.Running || lease == nil:
		return nil, models.Errorf(models.StateConflict, "the task is %s: only a running task hears signals", row.State)
	case len(lease.Signals) >= mostSignals:
		return nil, models.Errorf(models.StateConflict, "%d signals wait for the task's worker already", mostSignals)
	}
	s := models.Signal{ID: e.newID(), Env: x.Env, Task: x.Task, Name: x.Name, Data: x.Data}
	lease.Signals = append(lease.Signals, s)
	e.b.plan.Signals = append(e.b.plan.Signals, s)
	e.b.plan.Done = append(e.b.plan.Done, cmd.ID)
	e.told[row.Worker] = true
	return answer, nil
}

// sent hands over the signals that wait for a lease. They are gone once this batch is committed.
func (e *Engine) sent(lease *board.Lease, to []ToldSignal) []ToldSignal {
	row := lease.Row()
	for _, s := range lease.Signals {
		to = append(to, ToldSignal{Task: models.TaskRef{Env: row.Env, ID: row.ID}, Token: row.Token, Name: s.Name, Data: s.Data})
		e.b.plan.SignalsGone = append(e.b.plan.SignalsGone, s.ID)
	}
	lease.Signals = nil
	return to
}

// signalsOf is what a claim of a worker has to say to the leases it holds.
func (e *Engine) signalsOf(w *board.Worker) (out []ToldSignal) {
	delete(e.told, w.ID)
	leases := slices.DeleteFunc(slices.Clone(w.Leases), func(l *board.Lease) bool {
		return len(l.Signals) == 0 && (l.CancelTold || l.Row().State != models.CancelRequested)
	})
	slices.SortFunc(leases, func(a, b *board.Lease) int { return a.Row().ID.Compare(b.Row().ID) })
	for _, lease := range leases {
		row := lease.Row()
		if row.State == models.CancelRequested && !lease.CancelTold {
			lease.CancelTold = true
			out = append(out, ToldSignal{Task: models.TaskRef{Env: row.Env, ID: row.ID}, Token: row.Token, Word: "cancel"})
		}
		out = e.sent(lease, out)
	}
	return out
}

// tellParked answers claims that wait for work when there is something to say to what their worker runs.
func (e *Engine) tellParked() {
	if len(e.told) == 0 {
		return
	}
	for _, p := range slices.Clone(e.claims) {
		w := e.board.Workers[p.worker]
		if w == nil || !e.told[p.worker] || w.Session != p.cmd.Claim.Session {
			continue
		}
		if signals := e.signalsOf(w); len(signals) > 0 {
			e.unparkClaim(p, &Answer{Claimed: &Claimed{Signals: signals}}, nil)
		}
	}
	clear(e.told) // those that wait for nothing hear of it with their next beat
}

// restoreSignals gives leases back what their workers have not been told.
func (e *Engine) restoreSignals(signals []models.Signal) {
	for _, s := range signals {
		if held := e.board.Held(s.Task); held != nil && held.Lease != nil && held.Row.Env == s.Env {
			held.Lease.Signals = append(held.Lease.Signals, s)
		}
	}
}
