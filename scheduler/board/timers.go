package board

import (
	"container/heap"

	"nightshift/models"
)

type timerHeap []*Entry

func (h timerHeap) Len() int { return len(h) }
func (h timerHeap) Less(i, j int) bool {
	return h[i].timer < h[j].timer || h[i].timer == h[j].timer && h[i].Row.ID.Compare(h[j].Row.ID) < 0
}

func (h timerHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = int32(i), int32(j)
}
func (h *timerHeap) Push(x any) { e := x.(*Entry); e.index = int32(len(*h)); *h = append(*h, e) }
func (h *timerHeap) Pop() any {
	old := *h
	e := old[len(old)-1]
	*h = old[:len(old)-1]
	return e
}

// TimerOf is when time alone changes a row that is not live and not final; 0: never.
func TimerOf(row *models.Task) models.Instant {
	if !row.State.Waiting() || row.State == models.Staged {
		return 0
	}
	switch {
	case row.WakeAt == 0:
		return row.ExpiresAt
	case row.ExpiresAt == 0:
		return row.WakeAt
	}
	return min(row.WakeAt, row.ExpiresAt)
}

// Watch puts the row's timer where it belongs now: into the heap when it is near, out of it when there is none.
func (b *Board) Watch(row *models.Task) {
	at := TimerOf(row)
	e := b.held[row.ID]
	if e != nil && e.timer != 0 {
		heap.Remove(&b.timers, int(e.index))
		e.timer = 0
	}
	if at == 0 || at > b.horizon {
		if e != nil {
			b.release(e)
		}
		return
	}
	e = b.hold(row)
	e.timer = at
	heap.Push(&b.timers, e)
	if b.Limits.MostTimers > 0 && len(b.timers) > 2*b.Limits.MostTimers {
		b.shrinkTimers()
	}
}

// shrinkTimers keeps the nearest and lowers the horizon; the rest is read again when it comes near.
func (b *Board) shrinkTimers() {
	keep := make([]*Entry, 0, b.Limits.MostTimers)
	for len(keep) < b.Limits.MostTimers {
		keep = append(keep, heap.Pop(&b.timers).(*Entry))
	}
	b.horizon = keep[len(keep)-1].timer
	dropped := b.timers
	b.timers = nil
	for _, e := range dropped {
		if e.timer == b.horizon {
			keep = append(keep, e)
			continue
		}
		e.timer = 0
		b.release(e)
	}
	for _, e := range keep {
		heap.Push(&b.timers, e)
	}
}

// DueBy takes the next timer that is due, nil when there is none.
func (b *Board) DueBy(now models.Instant) *Entry {
	if len(b.timers) == 0 || b.timers[0].timer > now {
		return nil
	}
	e := heap.Pop(&b.timers).(*Entry)
	e.timer = 0
	return e
}

// Settle lets go of an entry taken by DueBy once it has been dealt with. Its task may have got another entry meanwhile: it left a
// window that was cut, and then got a timer again.
func (b *Board) Settle(e *Entry) {
	if b.held[e.Row.ID] == e {
		b.release(e)
	}
}

// NextTimer is the next moment in the heap, or the horizon behind which more may stand.
func (b *Board) NextTimer() models.Instant {
	if len(b.timers) > 0 {
		return min(b.timers[0].timer, b.horizon)
	}
	return b.horizon
}

// TimerLookahead is how far the timers are kept.
const TimerLookahead = 60 * 1_000_000

// TimerAsk asks for the timers beyond the horizon when it has come near, else nil.
func (b *Board) TimerAsk(now models.Instant) *models.TimerAsk {
	if b.horizon > now+TimerLookahead/2 || b.Limits.MostTimers > 0 && len(b.timers) >= b.Limits.MostTimers {
		return nil
	}
	limit := max(1000, b.Limits.MostTimers)
	return &models.TimerAsk{After: b.horizon, Until: now + TimerLookahead, Limit: limit}
}

// TimersRead puts the answer to a TimerAsk into the heap.
func (b *Board) TimersRead(ask *models.TimerAsk, rows []models.Task) {
	b.horizon = ask.Until
	if len(rows) >= ask.Limit {
		b.horizon = TimerOf(&rows[len(rows)-1])
	}
	for i := range rows {
		if e := b.held[rows[i].ID]; e != nil && e.timer != 0 {
			continue
		}
		b.Watch(&rows[i])
	}
	if len(rows) >= ask.Limit { // more may stand at the very same moment
		b.horizon--
	}
}
