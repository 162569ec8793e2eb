package engine

import (
	"math"

	"nightshift/models"
	"nightshift/scheduler/board"
	"nightshift/scheduler/fit"
)

// Foresight is what a submit is told of a task that must start by some moment.
type Foresight struct {
	Start    models.Instant `json:"start,omitempty"`    // when it is expected to start; 0: that can't be said
	Feasible *bool          `json:"feasible,omitempty"` // whether that is in time; nil: that can't be said, or it has no such moment
}

// foresee says when a task of which all is known will start, and whether that is in time for its deadline and its expiry.
// It is a forecast by what waits and how long its like take: nothing is promised, and nothing is refused because of it.
func (e *Engine) foresee(row *models.Task, class *models.Class) (f Foresight) {
	last := row.ExpiresAt // the latest moment at which it may start
	if row.Deadline > 0 {
		by := row.Deadline - models.Instant(e.expected(row, startQuantile)*1e6)
		if last == 0 || by < last {
			last = by
		}
	}
	f.Start = e.startOf(row, class)
	if last == 0 {
		return f
	}
	switch soonest := max(f.Start, row.WakeAt, e.now); {
	case row.State.Live(): // it has started in the very same commit
		in := row.Deadline == 0 || row.StartedAt <= last
		f.Feasible = &in
	case f.Start == 0 && soonest <= last:
	default:
		in := soonest <= last
		f.Feasible = &in
	}
	return f
}

// startOf is when a new task is expected to start; 0: that depends on what nobody can foresee.
func (e *Engine) startOf(row *models.Task, class *models.Class) models.Instant {
	line := models.LineID{Lane: row.Lane, Env: row.Env, Class: row.Class}
	if row.State.Live() {
		return row.StartedAt
	}
	p := e.paceFor(row, class)
	_, rates := board.KeyGate(row.Gate)
	if row.State != models.Ready && row.State != models.Scheduled || row.Gate != "" && !rates || p.slots == 0 {
		return 0
	}
	for _, g := range e.board.GatesOf(line, e.now) {
		switch g.Reason {
		case "lane_limit", "type_limit", "tenant_concurrency", "rate_limit": // they open as work goes on
		default:
			return 0
		}
	}
	if row.State == models.Scheduled {
		return row.WakeAt
	}
	start := e.startBehind(e.aheadOf(row), p, e.book.Mean(e.board.TenantOf(row.Env), row.Class))
	return max(start, e.board.RatesLet(row, e.rows[row.ID] != nil))
}

// aheadOf is how many tasks of its line start before the next one behind a task, itself included. Beyond the window nothing is
// known of the order: it is taken for the last.
func (e *Engine) aheadOf(row *models.Task) int64 {
	line := e.board.Line(board.LineOf(row))
	if line == nil {
		return 1
	}
	if at := line.Position(row); at <= int64(line.Windowed()) {
		return at
	}
	return max(line.Ready, line.Position(row))
}

// pace is what workers that could run a task have for it.
type pace struct {
	slots, free int64
	own         float64 // of the slots, by the weights of the tenants that have work of the kind for the same workers
}

// paceFor adds up the slots of the workers that could run the task, how many of them are free, and its tenant's share.
func (e *Engine) paceFor(row *models.Task, class *models.Class) (p pace) {
	lane := e.laneOf(row)
	if lane == nil || class == nil {
		return p
	}
	tenant, looked := e.board.TenantOf(row.Env), map[*board.Make]bool{}
	weight, least := e.board.Weight(tenant), 1.0
	for _, w := range e.board.Workers { // any order: a sum
		if !e.there(w) || !e.board.Serves(w, row.Env, lane) {
			continue
		}
		if fits := row.Class != 0 && e.board.Fits(w, row.Class) || row.Class == 0 && fit.Lack(&w.Worker, class) == ""; !fits {
			continue
		}
		has, used := w.Slots, w.Use.Slots
		if w.KindSlots != nil {
			has, used = w.KindSlots[lane.Kind.String()], w.Use.BySlot[lane.Kind.String()]
		}
		p.slots, p.free = p.slots+int64(has), p.free+int64(max(0, has-used))
		if !looked[w.Make] && has > 0 {
			least = min(least, weight/(weight+e.board.Rivals(w, lane.Kind, tenant)))
		}
		looked[w.Make] = true
	}
	p.own = float64(p.slots) * least
	return p
}

// startBehind is when the last of so many starts: at once on free slots, then as often as the tenant's share of all slots is
// taken anew.
func (e *Engine) startBehind(ahead int64, p pace, seconds float64) models.Instant {
	if ahead <= p.free || p.slots == 0 {
		return e.now
	}
	return e.now + models.Instant(math.Ceil(float64(ahead-p.free)/p.own)*seconds*1e6)
}
