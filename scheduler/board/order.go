package board

import (
	"container/heap"
	"math"
	"slices"

	"nightshift/models"
)

// highest is a mark behind every task's.
var highest = models.Mark{AgeKey: math.MaxInt64}

// stand puts an ordered task among those that are ready and not parked; leave takes it away.
func (k *Key) stand(p turn) {
	if i, found := slices.BinarySearchFunc(k.standing, p, turn.compare); !found {
		k.standing = slices.Insert(k.standing, i, p)
	}
}

func (k *Key) leave(p turn) {
	if i, found := slices.BinarySearchFunc(k.standing, p, turn.compare); found {
		k.standing = slices.Delete(k.standing, i, i+1)
	}
}

// next says whether an ordered task is among the first in the order of the key that there is room for. It counts those
// that are ready: a parked one may stand anywhere from the first place of its queue on.
func (k *Key) next(row *models.Task, room int64) bool {
	older, _ := slices.BinarySearchFunc(k.standing, turn{row.OrderKey, row.ID}, turn.compare)
	return int64(older) < room && k.orders.least() >= row.OrderKey
}

// orderHeap is ordered queues by the first place that they may hold. An item is out of date when its queue has gone or
// holds another place first; such items leave as they come to the top.
type orderHeap []orderItem

type orderItem struct {
	first int64
	q     *queue
}

func (i orderItem) stale() bool { return i.q.n <= 0 || i.q.first.AgeKey != i.first }

func (h orderHeap) Len() int { return len(h) }
func (h orderHeap) Less(i, j int) bool {
	return h[i].first < h[j].first || h[i].first == h[j].first && h[i].q.id.gate < h[j].q.id.gate
}
func (h orderHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *orderHeap) Push(x any)   { *h = append(*h, x.(orderItem)) }
func (h *orderHeap) Pop() any {
	old := *h
	item := old[len(old)-1]
	old[len(old)-1] = orderItem{}
	*h = old[:len(old)-1]
	return item
}

func (h *orderHeap) push(q *queue) { heap.Push(h, orderItem{q.first.AgeKey, q}) }

func (h *orderHeap) top() *queue {
	for h.Len() > 0 {
		if item := (*h)[0]; !item.stale() {
			return item.q
		}
		heap.Pop(h)
	}
	return nil
}

// least is the first place that any parked ordered task may hold.
func (h *orderHeap) least() int64 {
	if q := h.top(); q != nil {
		return q.first.AgeKey
	}
	return math.MaxInt64
}

// raise says that no task of an ordered queue stands before a place.
func (b *Board) raise(q *queue, first int64) {
	q.first = models.Mark{AgeKey: first}
	q.agesAt = 0
	for _, need := range q.keys {
		if !need.Rate() {
			b.key(idOf(q.id.env, need)).orders.push(q)
		}
	}
}

// waitForRate lets an ordered queue wait for the rate that its keeper misses; of its other keys it is the first anyway.
func (b *Board) waitForRate(q *queue) {
	if q.keep == nil {
		return
	}
	at, _ := q.keep.missing(b)
	if !at.ID.Rate {
		return
	}
	if q.at != at {
		b.unwait(q)
		b.wait(q, at)
	}
	b.opening(at)
}

// ordered looks at an ordered queue: its first task comes back where it is the first in the order of all its keys and they
// have room.
func (l *looking) ordered(q *queue) {
	if q == nil || q.asked || q.n <= 0 || len(l.asks) >= l.most {
		return
	}
	if q.keep != nil {
		// With all its keys it waits for its turn alone.
		if l.b.takes(q.keep) && (!q.keep.whole() || l.b.InTurn(&q.keep.entry.Row)) {
			l.due = append(l.due, q.keep.entry.Row)
		} else {
			l.b.waitForRate(q)
		}
		return
	}
	open, first := true, true
	for _, need := range q.keys {
		k := l.b.key(idOf(q.id.env, need))
		room := l.b.room(k, need.Limit)
		if !need.Rate() {
			older := 0
			for older < len(k.standing) && k.standing[older].order < q.first.AgeKey {
				older++
			}
			if k.orders.top() != q {
				return // another is before it: that one is looked at
			}
			room -= int64(older)
			first = first && older == 0
		}
		if room <= 0 {
			open = false
			if need.Rate() && k != l.k && q.at != k {
				l.b.unwait(q)
				l.b.wait(q, k)
			}
			l.b.opening(k)
			break
		}
	}
	if open || first && l.b.mayTake(q) {
		l.ask(q, 1)
	}
}
