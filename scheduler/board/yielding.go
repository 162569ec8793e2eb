package board

import (
	"cmp"
	"fmt"
	"slices"

	"nightshift/models"
)

// Gathered is what stands ready of what a hold yields to.
type Gathered struct {
	Busy    float64 // slots it took in the mean since the last look
	Waiting int64
	Oldest  models.Instant // since when the first in line stands there; 0: nothing waits
}

// Gather looks at the lines that others yield to: how much of them stands ready for the workers of each hold. It costs by
// the lines of kinds and lanes that others yield to.
func (b *Board) Gather() {
	for _, r := range b.Rules() {
		for _, h := range r.holds { // any order: each on its own
			h.queued, h.since, h.line = 0, 0, nil
		}
	}
	for _, r := range b.kindRules {
		for _, kind := range r.To {
			for _, q := range b.order[kind] {
				for _, l := range q.Lines {
					b.gather(r, l)
				}
			}
		}
	}
	for _, rules := range b.laneRules { // any order: each on its own
		for _, r := range rules {
			for _, n := range r.ToThe {
				for _, l := range b.Lanes[n].lines {
					b.gather(r, l)
				}
			}
		}
	}
}

func (b *Board) gather(r *Rule, l *Line) {
	head := l.Head()
	if head == nil || !b.Open(&head.Row) {
		return
	}
	for _, p := range l.places {
		m := p.stand.of
		h := r.holds[m.pool]
		if h == nil || h.line == l || p.stand.use.full || !b.contests(r, m.like) {
			continue
		}
		h.line = l
		h.queued += l.Ready
		if at := max(head.Row.ReadyAt, head.Row.UpdatedAt); h.since == 0 || at < h.since {
			h.since = at
		}
	}
}

// Gathered tells what Gather found.
func (b *Board) Gathered(h *Hold) Gathered {
	return Gathered{Busy: h.busy.read(b.Now), Waiting: h.queued, Oldest: h.since}
}

// Counts says whether a lease counts as work that yields in the hold.
func (l *Lease) Counts(h *Hold) bool {
	return l.ofKind != nil && l.ofKind.yields == h || l.ofLane != nil && l.ofLane.yields == h
}

// ContestedBy is a worker of the hold's pool that could run a line and that the other side could take too, nil when there
// is none.
func (b *Board) ContestedBy(h *Hold, l *Line) *Worker {
	for _, m := range b.makes {
		if m.pool == h.Pool && b.Fits(m.like, l.ID.Class) && b.Serves(m.like, l.ID.Env, b.Lanes[l.ID.Lane]) && b.contests(h.Rule, m.like) {
			return m.like
		}
	}
	return nil
}

// Yielding calls each for the lines with a task at hand that yield in a hold, with a worker that could run them, until it
// says no. It costs by the lines of what yields.
func (b *Board) Yielding(h *Hold, each func(*Line, *Worker) bool) {
	look := func(l *Line) bool {
		if l.Head() == nil && l.Urgent() == nil || b.shutBy(&l.at, true) != "" {
			return true
		}
		w := b.ContestedBy(h, l)
		return w == nil || each(l, w)
	}
	for _, kind := range h.Rule.Kinds {
		for _, q := range b.order[kind] {
			for _, l := range q.Lines {
				if !look(l) {
					return
				}
			}
		}
	}
	for _, n := range h.Rule.Lanes {
		if lane := b.Lanes[n]; lane != nil {
			for _, l := range lane.lines {
				if !look(l) {
					return
				}
			}
		}
	}
}

// HoldsIn are the holds of a lane in a pool, nil each where there is none.
func (b *Board) HoldsIn(pool string, lane *Lane) (ofKind, ofLane *Hold) {
	for _, r := range b.kindRules {
		if slices.Contains(r.Kinds, lane.Kind) {
			ofKind = r.holds[pool]
		}
	}
	if lane.rule != nil {
		ofLane = lane.rule.holds[pool]
	}
	return ofKind, ofLane
}

// checkHolds says where a hold counts something else than the rows.
func (b *Board) checkHolds(fresh *Board) error {
	rules, want := b.Rules(), fresh.Rules()
	if len(rules) != len(want) {
		return fmt.Errorf("%d rules of who yields on the board, the rows make %d", len(rules), len(want))
	}
	fresh.apartLike(b)
	bound := 0
	for i, r := range rules {
		for pool := range merged(r.holds, want[i].holds) { // any order: the first difference found will do
			got, other := r.holds[pool], want[i].holds[pool]
			if got == nil || other == nil {
				if h := cmp.Or(got, other); h.Running != 0 || h.busy.n != 0 {
					return fmt.Errorf("rule %v of pool %s: known on the board %v, in its rebuild %v", r, pool, got != nil, other != nil)
				}
				continue
			}
			if got.Running != other.Running || got.busy.n != other.busy.n {
				return fmt.Errorf("pool %s: %d that yield and %d that they yield to on the board, the rows say %d and %d", pool, got.Running, got.busy.n, other.Running, other.busy.n)
			}
		}
		for _, h := range r.holds { // any order: a count
			if h.Holds() {
				bound++
			}
		}
	}
	if bound != b.bound {
		return fmt.Errorf("%d holds are counted, and there are %d", b.bound, bound)
	}
	return nil
}
