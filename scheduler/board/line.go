package board

import (
	"math"

	"nightshift/models"
)

// Line is the ready, ungated tasks of one lane, environment and class, in two orders: by rank and, for those with a
// deadline, by the moment they must start.
type Line struct {
	ID         models.LineID
	Kind       models.KindName
	Tenant     int32
	Production bool  // its environment is one of production
	Ready      int64 // all of them
	Timed      int64 // of those, the ones with a deadline

	at     standing
	told   int64 // of the ready ones, how many name an estimate
	workMS int64 // and the sum of those

	ranks   window
	starts  window
	fresh   bool // it has never been on offer
	offered bool // it is open and has a task at hand
	hungry  bool // among those that LineAsks looks at
	shut    bool // its gate has been closed since it was last on offer
	places  []place
	inGroup int // its place among the lines of its group, lane and queue
	inLane  int
	inQueue int
	// Misfit is when a worker with a free slot last had no room for its tasks and started something else: others fill the gaps.
	Misfit models.Instant
	// UrgentLast says that its last start went by the deadline rather than by rank.
	UrgentLast bool
}

// Queue is what one tenant has ready in one kind.
type Queue struct {
	Tenant int32
	Lines  []*Line // in no order

	index int
}

// LineOf names the line a task belongs to.
func LineOf(row *models.Task) models.LineID {
	return models.LineID{Lane: row.Lane, Env: row.Env, Class: row.Class}
}

// Line finds a line, nil when nothing of it is ready.
func (b *Board) Line(id models.LineID) *Line { return b.lines[id] }

// Head is the best task of the line that is at hand, nil while a refill is awaited.
func (l *Line) Head() *Entry { return l.ranks.first() }

// Urgent is the task at hand that must start first to make its deadline, nil when there is none.
func (l *Line) Urgent() *Entry { return l.starts.first() }

// Windowed says how many tasks of the line are at hand.
func (l *Line) Windowed() int { return len(l.ranks.entries) }

// At is the n-th task of the window, nil beyond it.
func (l *Line) At(n int) *Entry {
	if n >= len(l.ranks.entries) {
		return nil
	}
	return l.ranks.entries[n]
}

// UrgentAt is the n-th task of the window by the moment it must start, nil beyond it.
func (l *Line) UrgentAt(n int) *Entry {
	if n >= len(l.starts.entries) {
		return nil
	}
	return l.starts.entries[n]
}

// Position is the task's place in its line, 1 for the next; beyond the window it is at least the window's length + 1.
func (l *Line) Position(row *models.Task) int64 {
	i, _ := l.ranks.find(row)
	return int64(i) + 1
}

// Demote leaves a task that can no longer make its deadline out of the order by start; its rank stays.
func (b *Board) Demote(l *Line) {
	e := l.starts.first()
	if e == nil {
		return
	}
	l.starts.passed = byStart(&e.Row)
	l.starts.remove(&e.Row)
	b.left(l, e)
}

// Queues lists the tenants with ready work in a kind, in no order that means anything.
func (b *Board) Queues(kind models.KindName) []*Queue { return b.order[kind] }

func (b *Board) kindOf(lane int32) models.KindName {
	if l := b.Lanes[lane]; l != nil {
		return l.Kind
	}
	return models.Batch
}

// openLine finds or makes a line. A tenant that had nothing ready in the kind re-enters every pool at its virtual time.
func (b *Board) openLine(id models.LineID) *Line {
	if l := b.lines[id]; l != nil {
		return l
	}
	l := &Line{ID: id, Kind: b.kindOf(id.Lane), Tenant: b.TenantOf(id.Env), fresh: true}
	if env := b.Envs[id.Env]; env != nil {
		l.Production = env.Kind == "production"
	}
	l.ranks = window{by: byRank, all: true, passed: lowest, want: b.Limits.Heads}
	l.starts = window{by: byStart, all: true, passed: lowest, want: b.Limits.Heads}
	b.lines[id] = l
	b.appears(id.Env, id.Class, 1)
	b.enrol(l)
	q := b.queues[l.Kind][l.Tenant]
	if q == nil {
		q = &Queue{Tenant: l.Tenant, index: len(b.order[l.Kind])}
		b.queues[l.Kind][l.Tenant] = q
		b.order[l.Kind] = append(b.order[l.Kind], q)
		for clock, c := range b.clocks { // any order: each on its own
			if clock.kind == l.Kind {
				c.Wake(l.Tenant)
			}
		}
	}
	l.inQueue = len(q.Lines)
	q.Lines = append(q.Lines, l)
	if lane := b.Lanes[id.Lane]; lane != nil {
		l.inLane = len(lane.lines)
		lane.lines = append(lane.lines, l)
	}
	return l
}

func (b *Board) closeLine(l *Line) {
	b.offer(l)
	delete(b.lines, l.ID)
	b.appears(l.ID.Env, l.ID.Class, -1)
	b.strike(l)
	if lane := b.Lanes[l.ID.Lane]; lane != nil && l.inLane < len(lane.lines) && lane.lines[l.inLane] == l {
		lane.lines = swapOut(lane.lines, l.inLane, func(o *Line) *int { return &o.inLane })
	}
	q := b.queues[l.Kind][l.Tenant]
	q.Lines = swapOut(q.Lines, l.inQueue, func(o *Line) *int { return &o.inQueue })
	if len(q.Lines) == 0 {
		delete(b.queues[l.Kind], l.Tenant)
		b.order[l.Kind] = swapOut(b.order[l.Kind], q.index, func(o *Queue) *int { return &o.index })
	}
}

// swapOut takes the i-th out of a list that has no order; the last takes its place and is told so.
func swapOut[T any](list []T, i int, place func(T) *int) []T {
	last := len(list) - 1
	if i != last {
		list[i] = list[last]
		*place(list[i]) = i
	}
	var none T
	list[last] = none
	return list[:last]
}

// lowest is a mark before every task's.
var lowest = models.Mark{AgeKey: math.MinInt64}

// Stand puts a ready, ungated task into its line.
func (b *Board) Stand(row *models.Task) {
	l := b.openLine(LineOf(row))
	b.count(l, row, 1)
	b.enter(l, row)
	b.shrink(l)
	if l.ranks.low(l.Ready, l.ranks.want) || l.starts.low(l.Timed, l.starts.want) {
		b.looks(l)
	}
}

// enter puts a task into the windows that it belongs to.
func (b *Board) enter(l *Line, row *models.Task) {
	ranked, timed := l.ranks.admits(row), row.LatestStart > 0 && l.starts.admits(row)
	if !ranked && !timed {
		return
	}
	e := b.hold(row)
	if ranked && l.ranks.insert(e) {
		e.windows++
		b.entries++
	}
	if timed && l.starts.insert(e) {
		e.windows++
		b.entries++
	}
	e.line = l
	if !l.offered {
		b.offer(l)
		return
	}
	l.show()
}

// left notes that an entry went out of one of its line's windows.
func (b *Board) left(l *Line, e *Entry) {
	b.entries--
	b.looks(l)
	if e.windows--; e.windows == 0 {
		e.line = nil
		b.release(e)
	}
	if len(l.ranks.entries)+len(l.starts.entries) == 0 {
		b.offer(l)
		return
	}
	l.show()
}

func (b *Board) count(l *Line, row *models.Task, n int64) {
	l.Ready += n
	if row.LatestStart > 0 {
		l.Timed += n
	}
	if row.EstimateMS > 0 {
		l.told += n
		l.workMS += n * row.EstimateMS
	}
	b.ready[l.Kind] += n
	l.at.use.Queued += n
	if lane := b.Lanes[l.ID.Lane]; lane != nil {
		lane.Depth += n
	}
}

// Work is the expected run time of all ready tasks of the line in seconds, where those that name no estimate take mean.
// After a rebuild it is an extrapolation of the first tasks until those have gone.
func (l *Line) Work(mean float64) float64 {
	return max(0, float64(l.workMS)/1000) + float64(max(0, l.Ready-l.told))*mean
}

// StepOut takes a task that was ready and ungated out of its line, whether it stands in a window or beyond.
func (b *Board) StepOut(row *models.Task) {
	id, e := LineOf(row), b.held[row.ID]
	var l *Line
	if e != nil && e.line != nil && e.line.ID == id {
		l = e.line
	} else if l = b.lines[id]; l == nil {
		return
	}
	b.count(l, row, -1)
	if e != nil && e.line == l {
		b.takeOut(l, e)
	}
	if l.Ready > 0 {
		return
	}
	for _, w := range []*window{&l.ranks, &l.starts} {
		for len(w.entries) > 0 {
			b.takeOut(l, w.entries[0])
		}
	}
	b.closeLine(l)
}

func (b *Board) takeOut(l *Line, e *Entry) {
	for _, w := range []*window{&l.ranks, &l.starts} {
		if w.remove(&e.Row) {
			b.left(l, e)
		}
	}
}

// share is what any line may hold whatever its use: all of them together a quarter of the board.
func (b *Board) share() int {
	return max(b.Limits.Heads, min(b.Limits.MostHeads, b.Limits.MostEntries/4/max(1, len(b.lines))))
}

// shrink keeps a line's windows within twice what they want or their share, and all windows within the board's limit.
func (b *Board) shrink(l *Line) {
	for _, w := range []*window{&l.ranks, &l.starts} {
		if keep := max(w.want, b.share()); len(w.entries) > 2*keep {
			b.trim(l, w, keep)
		}
	}
	if b.entries <= max(b.Limits.MostEntries, len(b.lines)) {
		return
	}
	for _, keep := range []int{b.Limits.Heads, 1} {
		for _, kind := range b.order {
			for _, q := range kind {
				for _, line := range q.Lines {
					for _, w := range []*window{&line.ranks, &line.starts} {
						w.want = min(w.want, max(keep, 1))
						b.trim(line, w, keep)
					}
				}
			}
		}
		if b.entries <= max(b.Limits.MostEntries, len(b.lines)) {
			return
		}
	}
}

// trim lowers a window's watermark so that at most keep tasks stay.
func (b *Board) trim(l *Line, w *window, keep int) {
	gone := w.cut(keep)
	if len(gone) == 0 {
		return
	}
	b.Counted.Shrinks++
	for _, e := range gone {
		b.left(l, e)
	}
}

// LineAsks lists the windows that run low while more tasks stand beyond them, at most most of them. Only lines of which
// something was taken since they were last looked at are looked at.
func (b *Board) LineAsks(most int) []models.LineAsk {
	var asks []models.LineAsk
	room := max(b.Limits.MostEntries, len(b.lines)) - b.entries
	least := b.share() // up to it a line is filled at once, beyond by doubling
	for i, l := range b.hungry {
		if len(asks) >= most {
			b.hungry = append(b.hungry[:0], b.hungry[i:]...)
			return asks
		}
		l.hungry = false
		if b.lines[l.ID] == l {
			asks, room = l.asks(asks, room, least)
		}
	}
	clear(b.hungry)
	b.hungry = b.hungry[:0]
	return asks
}

// looks puts a line among those that LineAsks looks at.
func (b *Board) looks(l *Line) {
	if !l.hungry && (!l.ranks.all || !l.starts.all) {
		l.hungry = true
		b.hungry = append(b.hungry, l)
	}
}

func (l *Line) asks(asks []models.LineAsk, room, least int) ([]models.LineAsk, int) {
	for i, w := range []*window{&l.ranks, &l.starts} {
		ready := l.Ready
		if i == 1 {
			ready = l.Timed
		}
		want := max(w.want, least)
		if !w.low(ready, want) || len(w.entries) > 0 && room <= 0 {
			continue
		}
		limit := max(1, min(want, room))
		room -= limit
		asks = append(asks, models.LineAsk{Line: l.ID, ByStart: i == 1, After: w.after(), Limit: limit})
	}
	return asks, room
}

// Refilled puts the answer to a LineAsk into the window.
func (b *Board) Refilled(ask models.LineAsk, rows []models.Task) {
	l := b.lines[ask.Line]
	if l == nil {
		return
	}
	b.Counted.Refills++
	w := &l.ranks
	if ask.ByStart {
		w = &l.starts
	}
	most := b.Limits.MostHeads
	if 2*b.entries >= b.Limits.MostEntries { // full windows are worth more than large ones
		most = w.want
	}
	w.filled(rows, ask.Limit, most)
	for i := range rows {
		b.enter(l, &rows[i])
	}
	b.looks(l)
}
