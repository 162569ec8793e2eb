package board

import (
	"fmt"

	"nightshift/models"
	"nightshift/scheduler/elastic"
)

// Hold is what a rule leaves of a pool. It counts on workers whose slots both sides could take.
type Hold struct {
	elastic.Hold
	Rule    *Rule
	Pool    string
	Running int32        // tasks of what yields
	Seen    elastic.Seen // at the last look

	busy   tally // of what it yields to
	queued int64 // tasks of that at hand, gathered by a look
	since  models.Instant
	line   *Line // that was gathered last

	classes map[int32]models.Instant // of what it yields to, by when they were seen last
}

// Shut says that no more of what yields may start in the pool.
func (h *Hold) Shut() bool { return h != nil && h.Running >= h.Room }

// tally counts what runs, and for how long.
type tally struct {
	n    int32
	area float64 // of n over time since it was last read, in task-microseconds
	from models.Instant
	at   models.Instant
}

func (t *tally) settle(now models.Instant) {
	if now > t.at {
		t.area += float64(t.n) * float64(now-t.at)
		t.at = now
	}
}

func (t *tally) add(n int32, now models.Instant) {
	t.settle(now)
	t.n += n
}

// read is the mean since it was last read.
func (t *tally) read(now models.Instant) float64 {
	t.settle(now)
	mean := float64(t.n)
	if now > t.from && t.from > 0 {
		mean = t.area / float64(now-t.from)
	}
	t.area, t.from = 0, now
	return mean
}

// counts are the holds that a lease of a kind or lane counts in on some worker; nil: none.
type counts struct {
	yields *Hold
	needs  []*Hold
}

// put counts a lease that begins or ends.
func (b *Board) put(c *counts, n int32) {
	if c == nil {
		return
	}
	for _, h := range c.needs {
		h.busy.add(n, b.Now)
	}
	if h := c.yields; h != nil {
		was := h.Shut()
		if h.Running += n; h.Shut() != was {
			b.replace(h)
		}
	}
}

// SetRoom takes over what a look at a hold said; bound holds are those that hold anything.
func (b *Board) SetRoom(h *Hold, look func(*elastic.Hold)) {
	held, shut := h.Holds(), h.Shut()
	look(&h.Hold)
	if h.Holds() != held {
		b.bound--
		if h.Holds() {
			b.bound += 2
		}
	}
	if h.Shut() != shut {
		b.replace(h)
	}
}

// replace looks anew whom the lines of lanes that yield are offered to. Those of kinds stay on offer: the whole kind is
// passed over.
func (b *Board) replace(h *Hold) {
	for _, number := range h.Rule.Lanes {
		lane := b.Lanes[number]
		if lane == nil {
			continue
		}
		b.offerLane(lane)
		for _, l := range lane.lines {
			if l.offered && !h.Shut() {
				b.unblock(l.Kind, l.Tenant)
			}
		}
	}
}

// offerLane offers the lines of a lane that are on offer to the makes that don't hold them back.
func (b *Board) offerLane(lane *Lane) {
	for _, l := range lane.lines {
		if !l.offered {
			continue
		}
		l.withdraw()
		for _, m := range b.makes {
			m.add(b, l)
		}
	}
}

// Yields says that the worker may start no more of a kind, for its rule; what is let go of the hold is on its make's list.
func (w *Worker) Yields(kind models.KindName) bool {
	c := w.counts[kind]
	return c != nil && c.yields.Shut()
}

// HoldsOn are the holds that a line of this kind and lane is under on a worker, nil each where there is none.
func (b *Board) HoldsOn(w *Worker, kind models.KindName, lane *Lane) (ofKind, ofLane *Hold) {
	if c := w.counts[kind]; c != nil {
		ofKind = c.yields
	}
	if lane != nil && lane.rule != nil && b.contests(lane.rule, w) {
		ofLane = lane.rule.holds[w.Pool]
	}
	return ofKind, ofLane
}

// HeldOn is the hold because of which nothing of the lane starts on the worker, nil when there is none.
func (b *Board) HeldOn(w *Worker, kind models.KindName, lane *Lane) *Hold {
	if b.bound == 0 {
		return nil
	}
	ofKind, ofLane := b.HoldsOn(w, kind, lane)
	switch {
	case ofLane.Shut():
		return ofLane
	case ofKind.Shut():
		return ofKind
	}
	return nil
}

// holdable says that a hold leaves tasks of a lane only a part of the pool of a worker, used up or not.
func (b *Board) holdable(w *Worker, lane *Lane) bool {
	ofKind, ofLane := b.HoldsOn(w, lane.Kind, lane)
	return ofKind != nil && ofKind.Holds() || ofLane != nil && ofLane.Holds()
}

// heldEverywhere is a hold because of which nothing of a place starts anywhere: all workers that could run it hold it back.
func (b *Board) heldEverywhere(p *standing) (held *Hold) {
	if b.bound == 0 || p.lane == nil {
		return nil
	}
	for _, m := range b.makes {
		if !b.Fits(m.like, p.id.Class) || !b.Serves(m.like, p.id.Env, p.lane) {
			continue
		}
		h := b.HeldOn(m.like, p.lane.Kind, p.lane)
		if h == nil {
			return nil
		}
		if held == nil || h.Room > held.Room {
			held = h
		}
	}
	return held
}

// Says is a sentence with the numbers of a hold.
func (h *Hold) Says(b *Board) string {
	return fmt.Sprintf("in the pool %s %s yield to %s: %d run, and of %.0f slots there is room for %d while %.1f are needed (%.1f lately, at most %.1f foreseen)",
		h.Pool, b.names(h.Rule.Kinds, h.Rule.Lanes), b.names(h.Rule.To, h.Rule.ToThe), h.Running, h.Seen.Capacity, h.Room, h.Need, h.Demand, h.Seen.Peak)
}

func (b *Board) names(kinds []models.KindName, lanes []int32) string {
	var words []string
	for _, k := range kinds {
		words = append(words, k.String())
	}
	for _, n := range lanes {
		if l := b.Lanes[n]; l != nil {
			words = append(words, l.Name)
		}
	}
	text := ""
	for i, word := range words {
		switch {
		case i == 0:
		case i == len(words)-1:
			text += " and "
		default:
			text += ", "
		}
		text += word
	}
	return text
}
