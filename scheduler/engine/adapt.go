package engine

import (
	"cmp"
	"math"
	"slices"

	"nightshift/models"
	"nightshift/scheduler/board"
	"nightshift/scheduler/elastic"
	"nightshift/scheduler/forecast"
)

const (
	// toldAtOnce bounds how many lanes are told to be held, or to be free again, in one look; the others follow in the next.
	toldAtOnce = 100
	// looseAtOnce bounds how many tasks are let go of a hold between two looks, looseOfLine those of one line.
	looseAtOnce = 256
	looseOfLine = 64
	// runtimesOf bounds how many lines are asked how long their work runs.
	runtimesOf = 256
	// farAhead is how many seconds ahead a pool without any demand is looked at whether some is foreseen.
	farAhead = 6 * 3600
	// pastKept is how long it is remembered of a task that the board does not have that no hold holds it, in microseconds.
	pastKept = 3600 * 1_000_000
)

// holding is what the engine knows of what is held.
type holding struct {
	held    map[models.HeldRef]*models.Held
	loose   map[models.ID]bool           // tasks that were let go of a hold at the last look
	past    map[models.ID]models.Instant // tasks that no hold holds any more, since one let them go; when the board had them last. A new brain learns of those of holds that go on, at its first look
	adapted models.Instant
}

// adapt looks at how much of each pool is needed by work that others yield to, every few seconds. What it finds is the
// room of the holds; picks only compare with it.
func (e *Engine) adapt() {
	if e.now-e.adapted < elastic.Every {
		return
	}
	e.adapted = e.now
	e.board.SetApart()
	e.board.Gather()
	workers := map[string][]*board.Worker{}
	for _, w := range e.workers() {
		workers[w.Pool] = append(workers[w.Pool], w)
	}
	for _, r := range e.board.Rules() {
		for _, h := range r.Holds() {
			e.lookAt(h, workers[h.Pool])
		}
	}
	e.letGo()
	e.tellHolds()
}

// lookAt finds out what a hold has to know.
func (e *Engine) lookAt(h *board.Hold, workers []*board.Worker) {
	g := e.board.Gathered(h)
	seen := elastic.Seen{
		At: e.now, Busy: g.Busy, Waiting: float64(g.Waiting), Running: float64(h.Running), Patience: e.patience(h.Rule), Runtime: h.Seen.Runtime,
	}
	for _, w := range workers {
		if e.there(w) {
			seen.Capacity += float64(e.board.SlotsFor(h.Rule, w))
		}
	}
	if g.Oldest > 0 {
		seen.Late = e.now.Sub(g.Oldest).Seconds()
	}
	if h.Holds() || h.Demand > 0 || g.Busy > 0 || g.Waiting > 0 || e.peak(h, farAhead) > 0 {
		if seconds := e.runtime(h, workers); seconds > 0 {
			seen.Runtime = seconds
		}
	}
	seen.Peak = e.peak(h, elastic.Ahead*seen.Runtime)
	room := h.Room
	h.Seen = seen
	e.board.SetRoom(h, func(x *elastic.Hold) { x.Look(seen) })
	if h.Room > room {
		e.dirty = true
	}
}

// peak is the most slots that what a hold yields to is foreseen to need in so many seconds from now. What is foreseen is
// foreseen of kinds.
func (e *Engine) peak(h *board.Hold, seconds float64) float64 {
	until := e.now + models.Instant(seconds*1e6)
	switch {
	case len(h.Rule.To) == 0:
		return 0
	case e.cfg.Peak != nil:
		return e.cfg.Peak(h.Pool, h.Rule.To, e.now, until)
	}
	kinds := forecast.Kinds{}
	for _, k := range h.Rule.To {
		kinds[k] = true
	}
	usual, _ := e.Foreseen().Peak(h.Pool, kinds, e.now, until) // what goes beyond it is what the headroom is for
	return usual
}

// patience is that of the most impatient work that a rule yields to.
func (e *Engine) patience(r *board.Rule) float64 {
	least := math.Inf(1)
	for _, k := range r.To {
		least = min(least, elastic.Patience(k))
	}
	for _, n := range r.ToThe {
		if l := e.board.Lanes[n]; l != nil {
			least = min(least, elastic.Patience(l.Kind))
		}
	}
	return least
}

// runtime is how long the work that yields takes in the pool: what runs, and what stands first in its lines.
func (e *Engine) runtime(h *board.Hold, workers []*board.Worker) float64 {
	var seconds []float64
	for _, w := range workers {
		for _, l := range w.Leases {
			if l.Counts(h) {
				seconds = append(seconds, max(e.expected(l.Row(), elastic.RuntimeShare), e.now.Sub(l.Row().StartedAt).Seconds()))
			}
		}
	}
	left := runtimesOf
	e.board.Yielding(h, func(l *board.Line, _ *board.Worker) bool {
		if head := l.Head(); head != nil {
			seconds = append(seconds, e.expected(&head.Row, elastic.RuntimeShare))
		}
		left--
		return left > 0
	})
	if len(seconds) == 0 {
		return 0
	}
	slices.Sort(seconds)
	return seconds[int(elastic.RuntimeShare*float64(len(seconds)-1)+0.5)]
}

// heldRef is a lane in a pool.
func heldRef(lane int32, pool string) models.HeldRef { return models.HeldRef{Lane: lane, Pool: pool} }

// heldUntil says by when a task leaves what holds its lane on a worker, 0: nothing but room lets it go; false: nothing
// holds it.
func (e *Engine) heldUntil(row *models.Task, w *board.Worker) (until models.Instant, held bool) {
	lane := e.laneOf(row)
	if lane == nil || e.isPast(row.ID) {
		return 0, false
	}
	since := e.now // it is not told yet
	if told, ok := e.held[heldRef(lane.Number, w.Pool)]; ok {
		since = max(row.ReadyAt, told.Since)
	}
	ofKind, ofLane := e.board.HoldsOn(w, lane.Kind, lane)
	bounded := true
	by := func(h *board.Hold, most int32) {
		if !h.Shut() {
			return
		}
		held = true
		at := elastic.Until(since, most, row.LatestStart)
		bounded = bounded && at != 0
		until = max(until, at)
	}
	by(ofKind, e.board.Kinds[lane.Kind].MaxHold)
	by(ofLane, lane.MaxHold)
	if !bounded {
		until = 0
	}
	return until, held
}

// leavesAt is by when a held task is let go at the latest: by the first pool that does; 0: it is not held everywhere it could
// run, or nothing but room lets it go.
func (e *Engine) leavesAt(row *models.Task) (first models.Instant) {
	lane := e.laneOf(row)
	for _, w := range e.board.Makes() {
		if lane == nil || !e.board.Fits(w, row.Class) || !e.board.Serves(w, row.Env, lane) {
			continue
		}
		until, held := e.heldUntil(row, w)
		if !held {
			return 0
		}
		if until > 0 && (first == 0 || until < first) {
			first = until
		}
	}
	return first
}

// isPast says that a task was let go of a hold: none holds it again.
func (e *Engine) isPast(id models.ID) bool {
	_, past := e.past[id]
	return past
}

// keepPast remembers the tasks that the board has, and for a while those that it does not.
func (e *Engine) keepPast() {
	for id, seen := range e.past { // any order: each on its own
		if e.board.Held(id) != nil {
			e.past[id] = e.now
		} else if e.now-seen > pastKept {
			delete(e.past, id)
		}
	}
}

// letGo finds the tasks that leave a hold because their time has come, and lets them start beyond its room. What has left one is
// let go by each from then on.
func (e *Engine) letGo() {
	e.keepPast()
	e.loose = map[models.ID]bool{}
	var entries []*board.Entry
	until := map[models.ID]models.Instant{}
	add := func(entry *board.Entry, at models.Instant) {
		if !e.loose[entry.Row.ID] {
			e.loose[entry.Row.ID] = true
			entries, until[entry.Row.ID] = append(entries, entry), at
		}
	}
	window := func(h *board.Hold, w *board.Worker, at func(int) *board.Entry) {
		due := h.Shut() // so are the first, up to one that is not
		for n := range looseOfLine {
			entry := at(n)
			if entry == nil || !due && len(e.past) == 0 {
				return
			}
			if e.isPast(entry.Row.ID) {
				add(entry, 0)
				continue
			}
			at, held := e.heldUntil(&entry.Row, w)
			if due = due && held && elastic.Leaves(at, e.now); due {
				add(entry, at)
			}
		}
	}
	for _, r := range e.board.Rules() {
		for _, h := range r.Holds() {
			if !h.Shut() && (len(e.past) == 0 || !h.Holds()) {
				continue
			}
			e.board.Yielding(h, func(l *board.Line, w *board.Worker) bool {
				window(h, w, l.At)
				window(h, w, l.UrgentAt)
				return len(entries) < looseAtOnce
			})
		}
	}
	slices.SortFunc(entries, func(a, b *board.Entry) int {
		return cmp.Or(cmp.Compare(until[a.Row.ID], until[b.Row.ID]), a.Row.ID.Compare(b.Row.ID))
	})
	let := make([]board.Loose, 0, len(entries))
	for _, entry := range entries {
		let = append(let, board.Loose{Entry: entry})
	}
	let = e.letBrief(let)
	e.board.Loosen(let)
	for _, l := range let {
		e.dirty = true
		if l.Pool == "" && !e.isPast(l.Row.ID) {
			e.past[l.Row.ID] = e.now
			e.holdEvent(&l.Row, "task.released", "", "its latest start or the longest time it may be held is near")
		}
	}
}

// pickLoose takes the first task that was let go of a hold and fits the worker.
func (e *Engine) pickLoose(w *board.Worker, r *ration, kind models.KindName) (*board.Entry, []int) {
	for _, id := range w.Make.Loose(kind) {
		entry := e.board.Held(id)
		if entry == nil || !entry.Windowed() || entry.Row.State != models.Ready {
			continue
		}
		line, class := e.board.Line(board.LineOf(&entry.Row)), e.board.Classes[entry.Row.Class]
		if line == nil || class == nil || !e.board.OpenBesideHolds(line) || !e.board.Open(&entry.Row) || !e.known(&entry.Row) || !r.allows(kind, class) {
			continue
		}
		if cards, ok := w.Use.Room(&w.Worker, kind, class); ok && !e.keeps(w, kind, &entry.Row, cards) {
			return entry, cards
		}
	}
	return nil, nil
}
