package board

import (
	"slices"

	"nightshift/models"
)

// Line is the ready, ungated tasks of one lane, environment and class. Its window holds every one of them up to its
// watermark; those beyond are only counted.
type Line struct {
	ID     models.LineID
	Kind   models.KindName
	Tenant int32
	Ready  int64 // all of them

	window []*Entry
	all    bool        // the watermark is infinite
	mark   models.Mark // else every task up to here is in the window
	want   int         // how many it wants to keep
	stand  *Stand      // where it is on offer, nil: nowhere
}

// Queue is what one tenant has ready in one kind.
type Queue struct {
	Tenant int32
	Lines  []*Line
	stands []*Stand
}

func markOf(row *models.Task) models.Mark { return models.Mark{AgeKey: row.AgeKey, ID: row.ID} }

// LineOf names the line a task belongs to.
func LineOf(row *models.Task) models.LineID {
	return models.LineID{Lane: row.Lane, Env: row.Env, Class: row.Class}
}

// Line finds a line, nil when nothing of it is ready.
func (b *Board) Line(id models.LineID) *Line { return b.lines[id] }

// Head is the best task of the line that is at hand, nil while a refill is awaited.
func (l *Line) Head() *Entry {
	if len(l.window) == 0 {
		return nil
	}
	return l.window[0]
}

// At is the n-th task of the window, nil beyond it.
func (l *Line) At(n int) *Entry {
	if n >= len(l.window) {
		return nil
	}
	return l.window[n]
}

// Position is the task's place in its line, 1 for the next; beyond the window it is at least the window's length + 1.
func (l *Line) Position(row *models.Task) int64 {
	i, _ := slices.BinarySearchFunc(l.window, markOf(row), compareMark)
	return int64(i) + 1
}

func compareMark(e *Entry, m models.Mark) int {
	switch at := markOf(&e.Row); {
	case at.Less(m):
		return -1
	case m.Less(at):
		return 1
	}
	return 0
}

// Queues lists the tenants with ready work in a kind, in the order they came.
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
	l := &Line{ID: id, Kind: b.kindOf(id.Lane), Tenant: b.TenantOf(id.Env), all: true, want: b.Limits.Heads}
	b.lines[id] = l
	q := b.queues[l.Kind][l.Tenant]
	if q == nil {
		q = &Queue{Tenant: l.Tenant}
		b.queues[l.Kind][l.Tenant] = q
		b.order[l.Kind] = append(b.order[l.Kind], q)
		for clock, c := range b.clocks { // any order: each on its own
			if clock.kind == l.Kind {
				c.Wake(l.Tenant)
			}
		}
	}
	q.Lines = append(q.Lines, l)
	if lane := b.Lanes[id.Lane]; lane != nil {
		lane.lines = append(lane.lines, l)
	}
	return l
}

func (b *Board) closeLine(l *Line) {
	b.offer(l)
	delete(b.lines, l.ID)
	if lane := b.Lanes[l.ID.Lane]; lane != nil {
		lane.lines = slices.DeleteFunc(lane.lines, func(o *Line) bool { return o == l })
	}
	q := b.queues[l.Kind][l.Tenant]
	q.Lines = slices.DeleteFunc(q.Lines, func(o *Line) bool { return o == l })
	if len(q.Lines) == 0 {
		delete(b.queues[l.Kind], l.Tenant)
		b.order[l.Kind] = slices.DeleteFunc(b.order[l.Kind], func(o *Queue) bool { return o == q })
	}
}

// Stand puts a ready, ungated task into its line.
func (b *Board) Stand(row *models.Task) {
	l := b.openLine(LineOf(row))
	b.count(l, 1)
	if b.admit(row, l) {
		b.insert(l, row)
	}
	b.shrink(l)
}

// admit says whether the task belongs into the window: at or below the watermark.
func (b *Board) admit(row *models.Task, l *Line) bool {
	return l.all || !l.mark.Less(markOf(row))
}

func (b *Board) insert(l *Line, row *models.Task) {
	e := b.hold(row)
	if e.line != nil {
		return
	}
	e.Row = *row
	i, _ := slices.BinarySearchFunc(l.window, markOf(row), compareMark)
	l.window = slices.Insert(l.window, i, e)
	e.line = l
	b.entries++
	if l.stand == nil {
		b.offer(l)
	}
}

func (b *Board) count(l *Line, n int64) {
	l.Ready += n
	b.ready[l.Kind] += n
	if lane := b.Lanes[l.ID.Lane]; lane != nil {
		lane.Depth += n
	}
}

// StepOut takes a task that was ready and ungated out of its line, whether it stands in the window or beyond.
func (b *Board) StepOut(row *models.Task) {
	l := b.lines[LineOf(row)]
	if l == nil {
		return
	}
	b.count(l, -1)
	if e := b.held[row.ID]; e != nil && e.line == l {
		b.takeFromWindow(l, e)
		b.release(e)
	}
	if l.Ready <= 0 {
		for _, e := range slices.Clone(l.window) {
			b.takeFromWindow(l, e)
			b.release(e)
		}
		b.closeLine(l)
	}
}

func (b *Board) takeFromWindow(l *Line, e *Entry) {
	i, found := slices.BinarySearchFunc(l.window, markOf(&e.Row), compareMark)
	if !found {
		return
	}
	l.window = slices.Delete(l.window, i, i+1)
	e.line = nil
	b.entries--
	if len(l.window) == 0 {
		b.offer(l)
	}
}

// shrink keeps a line's window within twice what it wants, or, while the board is less than half full, within what any
// line may have; and all windows within the board's limit.
func (b *Board) shrink(l *Line) {
	keep := l.want
	if 2*b.entries < b.Limits.MostEntries {
		keep = max(keep, b.Limits.MostHeads)
	}
	if len(l.window) > 2*keep {
		b.trim(l, keep)
	}
	if b.entries <= max(b.Limits.MostEntries, len(b.lines)) {
		return
	}
	for _, keep := range []int{b.Limits.Heads, 1} {
		for _, kind := range b.order {
			for _, q := range kind {
				for _, line := range q.Lines {
					line.want = min(line.want, max(keep, 1))
					b.trim(line, keep)
				}
			}
		}
		if b.entries <= max(b.Limits.MostEntries, len(b.lines)) {
			return
		}
	}
}

// trim lowers the watermark so that at most keep tasks stay in the window.
func (b *Board) trim(l *Line, keep int) {
	if len(l.window) <= keep || keep < 1 {
		return
	}
	b.Counted.Shrinks++
	for _, e := range l.window[keep:] {
		e.line = nil
		b.entries--
		b.release(e)
	}
	clear(l.window[keep:])
	l.window = l.window[:keep]
	l.all, l.mark = false, markOf(&l.window[keep-1].Row)
}

// LineAsks lists the lines whose window runs low while more of them stand beyond it, at most most of them.
func (b *Board) LineAsks(most int) []models.LineAsk {
	var asks []models.LineAsk
	room := max(b.Limits.MostEntries, len(b.lines)) - b.entries
	for _, kind := range b.order {
		for _, q := range kind {
			for _, l := range q.Lines {
				low := len(l.window) <= l.want/4
				if l.all || !low || l.Ready <= int64(len(l.window)) || len(asks) >= most {
					continue
				}
				if len(l.window) > 0 && room <= 0 {
					continue
				}
				limit := max(1, min(l.want, room))
				room -= limit
				asks = append(asks, models.LineAsk{Line: l.ID, After: l.mark, Limit: limit})
			}
		}
	}
	return asks
}

// Refilled puts the answer to a LineAsk into the window; a line that ran dry grows its window.
func (b *Board) Refilled(ask models.LineAsk, rows []models.Task) {
	l := b.lines[ask.Line]
	if l == nil {
		return
	}
	b.Counted.Refills++
	for i := range rows {
		b.insert(l, &rows[i])
	}
	if len(rows) < ask.Limit {
		l.all = true
	} else {
		l.mark = markOf(&rows[len(rows)-1])
	}
	l.want = min(l.want*2, b.Limits.MostHeads)
}
