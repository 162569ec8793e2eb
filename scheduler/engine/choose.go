package engine

import (
	"nightshift/models"
	"nightshift/scheduler/board"
)

// choice is what a line or group would give the worker next.
type choice struct {
	entry  *board.Entry // nil: nothing
	line   *board.Line
	urgent bool
	cards  []int
}

// pickOf takes from the least served tenant, by virtual time, that offers something the worker fits, has room for and may
// start now.
func (e *Engine) pickOf(w *board.Worker, r *ration, kind models.KindName) (*board.Entry, []int) {
	var aside []*board.Stand
	defer func() { w.Make.PutBack(kind, aside) }()
	for {
		stand := w.Make.First(kind)
		if stand == nil {
			return nil, nil
		}
		if best := e.bestOf(w, r, kind, stand); best.entry != nil {
			best.line.UrgentLast = best.urgent
			return best.entry, best.cards
		}
		if w.Make.First(kind) == stand { // it may have gone: its last heads were parked
			aside = append(aside, w.Make.SetAside(kind))
		}
	}
}

// bestOf finds the best task a tenant offers that the worker has room for.
func (e *Engine) bestOf(w *board.Worker, r *ration, kind models.KindName, stand *board.Stand) (best choice) {
	if i := foremost(stand); i >= 0 {
		e.consider(w, r, kind, &stand.Offers[i], &best)
	}
	for i := 0; i < len(stand.Offers); i++ {
		o := &stand.Offers[i]
		line := o.Line
		if line == best.line {
			continue
		}
		e.consider(w, r, kind, o, &best)
		if i >= len(stand.Offers) || stand.Offers[i].Line != line {
			i-- // the line has gone off offer while its heads were parked
		}
	}
	return best
}

// consider takes a line's next task for the best so far where it is, and looks at the line only where it may be.
func (e *Engine) consider(w *board.Worker, r *ration, kind models.KindName, o *board.Offer, best *choice) {
	if o.Plain && behind(o, best) || !r.allows(kind, o.Class) {
		return
	}
	cards, ok := w.Use.Room(&w.Worker, kind, o.Class)
	if !ok {
		e.misfits = append(e.misfits, o.Line)
		return
	}
	if behind(o, best) {
		return
	}
	c := choice{line: o.Line, cards: cards}
	if c.entry, c.urgent = e.nextOf(c.line); c.entry != nil && !e.keeps(w, kind, &c.entry.Row, cards) && !e.crowds(c.line, c.entry) && (best.entry == nil || e.before(&c, best)) {
		*best = c
	}
}

// foremost is the offer that goes first by rank alone, -1 where deadlines have a say in all of them.
func foremost(stand *board.Stand) int {
	first := -1
	for i := range stand.Offers {
		o := &stand.Offers[i]
		if o.Timed {
			continue
		}
		if first < 0 || o.First && !stand.Offers[first].First || o.First == stand.Offers[first].First && o.Head.Less(stand.Offers[first].Head) {
			first = i
		}
	}
	return first
}

// behind says that a line surely has nothing that goes before the best so far.
func behind(o *board.Offer, best *choice) bool {
	if best.entry == nil || o.Timed {
		return false
	}
	if o.First != best.line.Production {
		return best.line.Production
	}
	row := &best.entry.Row
	return best.urgent || !o.Head.Less(models.Mark{AgeKey: row.AgeKey, ID: row.ID})
}

// before orders what one tenant could start: production first, then what is urgent, then by rank.
func (e *Engine) before(a, b *choice) bool {
	if a.line.Production != b.line.Production {
		return a.line.Production
	}
	if a.urgent != b.urgent {
		return a.urgent
	}
	x, y := &a.entry.Row, &b.entry.Row
	if a.urgent && x.LatestStart != y.LatestStart {
		return x.LatestStart < y.LatestStart
	}
	return x.AgeKey < y.AgeKey || x.AgeKey == y.AgeKey && x.ID.Compare(y.ID) < 0
}
