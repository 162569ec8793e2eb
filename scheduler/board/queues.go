package board

import (
	"container/heap"
	"slices"
	"strings"

	"nightshift/models"
)

// queueID names the parked tasks of a line that need the same keys. Ordered ones make one queue over all lines.
type queueID struct {
	env  int32
	gate string
	line models.LineID
}

// queue is parked tasks, of which the board knows no more than how many there are and before which place none stands. It
// waits for one key that has no room, so that whatever frees another key need not look at it.
type queue struct {
	id      queueID
	keys    []models.TaskKey // in key order
	ordered bool
	n       int64
	first   models.Mark    // no task of it comes before this
	agesAt  models.Instant // its first task is not past its ageing bound before this
	asked   bool           // its first task is being read
	keep    *keep          // what is kept for one of its tasks

	at    *Key // that it waits for; nil: none
	index int  // among those that wait for it
}

// before orders the queues that wait for a key: those for which others are kept already, then by rank.
func (q *queue) before(o *queue) bool {
	if (q.keep != nil) != (o.keep != nil) {
		return q.keep != nil
	}
	if q.first != o.first {
		return q.first.Less(o.first)
	}
	return q.id.gate < o.id.gate
}

// waitHeap is the queues of a line that wait for a key.
type waitHeap []*queue

func (h waitHeap) Len() int           { return len(h) }
func (h waitHeap) Less(i, j int) bool { return h[i].before(h[j]) }
func (h waitHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}
func (h *waitHeap) Push(x any) { q := x.(*queue); q.index = len(*h); *h = append(*h, q) }
func (h *waitHeap) Pop() any {
	old := *h
	q := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	return q
}

// wait makes a queue wait for a key.
func (b *Board) wait(q *queue, k *Key) {
	if k.waits == nil {
		k.waits = map[models.LineID]*waitHeap{}
	}
	h := k.waits[q.id.line]
	if h == nil {
		h = &waitHeap{}
		k.waits[q.id.line] = h
	}
	q.at = k
	heap.Push(h, q)
	b.opening(k)
}

// unwait takes a queue away from the key that it waits for.
func (b *Board) unwait(q *queue) {
	if q.at == nil {
		return
	}
	h := q.at.waits[q.id.line]
	heap.Remove(h, q.index)
	if h.Len() == 0 {
		delete(q.at.waits, q.id.line)
	}
	q.at = nil
}

// queueFor finds or makes the queue that a parked task belongs to.
func (b *Board) queueFor(gate string, line models.LineID, keys models.KeyText) *queue {
	id := queueID{line.Env, gate, line}
	if keys.Ordered {
		id.line = models.LineID{Env: line.Env}
	}
	q := b.parkedAt[id]
	if q == nil {
		q = &queue{id: id, ordered: keys.Ordered, first: highest}
		if name, single := keyOf(gate); single { // an older version parked tasks of any limit there
			q.keys = []models.TaskKey{{Name: name, Limit: 1}}
		} else {
			q.keys = inKeyOrder(models.UnpackKeys(keys.LimitKey, keys.KeyLimit, keys.MoreKeys))
		}
		b.parkedAt[id] = q
	}
	return q
}

// enqueue counts n tasks of a line into a queue, the first of which stands at the mark.
func (b *Board) enqueue(q *queue, n int64, first models.Mark) {
	q.n += n
	lower := first.Less(q.first)
	if lower {
		q.first, q.agesAt = first, 0
	}
	for _, need := range q.keys {
		k := b.key(idOf(q.id.env, need))
		k.Limit = max(k.Limit, need.Limit)
		k.queued += n
		if q.ordered && lower && !need.Rate() {
			k.orders.push(q)
		}
	}
	switch {
	case q.ordered:
		b.touch(b.key(idOf(q.id.env, q.keys[0])))
	case q.at == nil:
		at, room := b.lacks(q)
		b.wait(q, at)
		if room > 0 {
			b.touch(at)
		}
	case lower:
		heap.Fix(q.at.waits[q.id.line], q.index)
	}
}

// dequeue counts a parked task less.
func (b *Board) dequeue(q *queue, row *models.Task) {
	q.n--
	if q.n <= 0 {
		b.unwait(q)
		delete(b.parkedAt, q.id)
	} else if q.keep != nil && q.keep.entry.Row.ID == row.ID {
		b.setKeep(q, nil)
	}
	if q.ordered && q.n > 0 && row.OrderKey == q.first.AgeKey {
		b.raise(q, row.OrderKey+1)
	}
	for _, need := range q.keys {
		k := b.key(idOf(q.id.env, need))
		k.queued--
		b.touch(k)
	}
}

// lacks is the first of a queue's keys that has no room for one more task in its line, with no room; else its first key,
// and how many tasks may come back.
func (b *Board) lacks(q *queue) (at *Key, room int64) {
	least := int64(many)
	for _, need := range q.keys {
		k := b.key(idOf(q.id.env, need))
		left := b.room(k, need.Limit) - int64(k.Admitted[q.id.line])
		if left <= 0 {
			return k, 0
		}
		least = min(least, left)
	}
	return b.key(idOf(q.id.env, q.keys[0])), least
}

// KeyAsks lists what may come back from behind gates whose keys have room: the next of each line, at most most asks. due
// are tasks for which keys are kept and another may be taken.
func (b *Board) KeyAsks(most int) (asks []models.LineAsk, due []models.Task) {
	b.rateDue()
	ids := make([]KeyID, 0, len(b.touched))
	for id := range b.touched { // any order: sorted below
		ids = append(ids, id)
	}
	slices.SortFunc(ids, compareKeys)
	for _, id := range ids {
		if len(asks) >= most {
			break
		}
		delete(b.touched, id)
		k := b.keys[id]
		if k == nil {
			continue
		}
		look := &looking{b: b, k: k, asks: asks, due: due, most: most}
		look.ordered(k.orders.top())
		for _, line := range sortedLines(k.waits) {
			look.line(line)
		}
		asks, due = look.asks, look.due
		if len(asks) >= most {
			b.touched[id] = true // there may be more
		}
		b.opening(k)
	}
	return asks, due
}

// looking goes through what waits for a key that may have room.
type looking struct {
	b    *Board
	k    *Key
	asks []models.LineAsk
	due  []models.Task
	most int
}

// mostAside is how many queues are looked at for one that is past its ageing bound while others stand in the line already.
const mostAside = 64

// line looks at the queues of one line, in order of rank, until the room is given away.
func (l *looking) line(line models.LineID) {
	h := l.k.waits[line]
	room := l.b.room(l.k, l.k.Limit)
	left := room - int64(l.k.Admitted[line]) // for those that want to stand; keys are taken of all the room
	var aside []*queue
	for h.Len() > 0 && room > 0 && len(l.asks) < l.most && (left > 0 || len(aside) < mostAside) {
		q := (*h)[0]
		heap.Pop(h)
		q.at = nil
		if q.ordered {
			if l.ordered(q); q.at == nil {
				aside = append(aside, q)
			}
			continue
		}
		at, may := l.b.lacks(q)
		switch {
		case q.keep != nil:
			if l.b.takes(q.keep) {
				l.due = append(l.due, q.keep.entry.Row)
				left, room = left-1, room-1
			}
		case q.asked:
		case may > 0 && left > 0:
			n := min(may, left, q.n)
			l.ask(q, n)
			left, room = left-n, room-n
		case l.b.mayTake(q):
			l.ask(q, 1)
			left, room = left-1, room-1
		case may == 0 && at != l.k:
			l.b.wait(q, at)
			continue
		}
		aside = append(aside, q)
	}
	for _, q := range aside {
		l.b.wait(q, l.k)
	}
	if h.Len() == 0 {
		delete(l.k.waits, line)
	}
}

func (l *looking) ask(q *queue, n int64) {
	q.asked = true
	l.asks = append(l.asks, models.LineAsk{Line: q.id.line, Gate: q.id.gate, ByOrder: q.ordered, Limit: int(n)})
}

// Answered says that the rows a KeyAsks asked for were read.
func (b *Board) Answered(ask models.LineAsk) {
	if b.answeredMoney(ask) {
		return
	}
	if q := b.parkedAt[queueID{ask.Line.Env, ask.Gate, ask.Line}]; q != nil {
		q.asked = false
	}
}

// passedOver says whether another queue that waits for the same key has an older task that could come back.
func (b *Board) passedOver(row *models.Task) bool {
	q := b.queueAt(row)
	if q == nil || q.at == nil || q.ordered {
		return false
	}
	other := (*q.at.waits[q.id.line])[0]
	if other == q || other.asked || !other.before(q) {
		return false
	}
	_, room := b.lacks(other)
	return other.keep != nil && b.takes(other.keep) || other.keep == nil && (room > 0 || b.mayTake(other))
}

// Returns says whether a parked task may stand in its line again as far as its keys go.
func (b *Board) Returns(row *models.Task) bool {
	if b.keeps[row.ID] == nil && b.passedOver(row) {
		return false
	}
	keep, line := b.keeps[row.ID], LineOf(row)
	for need := range row.Keys() {
		k := b.keys[idOf(row.Env, need)]
		if k == nil {
			continue
		}
		room := b.room(k, need.Limit)
		kept := keep.has(need)
		if kept {
			room++
		}
		switch {
		case row.Has(models.Ordered): // in whatever line it stands
			if room <= 0 || !need.Rate() && !k.next(row, room) {
				return false
			}
		case !kept && room-int64(k.Admitted[line]) <= 0:
			return false
		}
	}
	return true
}

// Read notes that a parked task was read as the first of its gate, behind those that were read with it.
func (b *Board) Read(row *models.Task) {
	q := b.queueAt(row)
	switch mark := (models.Mark{AgeKey: row.AgeKey, ID: row.ID}); {
	case q == nil:
	case q.ordered && row.OrderKey > q.first.AgeKey:
		b.raise(q, row.OrderKey)
		for _, need := range q.keys {
			b.touch(b.key(idOf(q.id.env, need)))
		}
	case !q.ordered && q.first.Less(mark):
		b.rank(q, mark)
	}
}

// rank says before which place no task of a queue stands.
func (b *Board) rank(q *queue, first models.Mark) {
	q.first = first
	if q.at != nil {
		heap.Fix(q.at.waits[q.id.line], q.index)
	}
}

// Stays notes that the first task of a gate was read and does not come back yet; no key is taken for it before a moment.
func (b *Board) Stays(row *models.Task, until models.Instant) {
	q := b.queueAt(row)
	if q == nil {
		return
	}
	if mark := (models.Mark{AgeKey: row.AgeKey, ID: row.ID}); !q.ordered && mark.Less(q.first) {
		b.rank(q, mark)
	}
	if q.keep == nil {
		q.agesAt = until
		b.rewait(q)
	}
	for _, need := range q.keys {
		if k := b.key(idOf(q.id.env, need)); b.room(k, k.Limit) > 0 {
			b.touch(k) // the room that was meant for it is another's
		}
	}
}

// rewait lets a queue wait for the key that it lacks now, and has that key looked at where it lacks none.
func (b *Board) rewait(q *queue) {
	if q.ordered {
		b.waitForRate(q)
		return
	}
	at, room := b.lacks(q)
	if q.keep != nil {
		at, room = q.keep.missing(b)
	}
	b.unwait(q)
	b.wait(q, at)
	if room > 0 {
		b.touch(at)
	}
}

// queueAt is the queue that a parked task stands in.
func (b *Board) queueAt(row *models.Task) *queue {
	id := queueID{row.Env, row.Gate, LineOf(row)}
	if row.Has(models.Ordered) {
		id.line = models.LineID{Env: row.Env}
	}
	return b.parkedAt[id]
}

func keyOf(gate string) (string, bool) { return strings.CutPrefix(gate, keyGate) }
