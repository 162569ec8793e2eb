package board

import (
	"fmt"
	"maps"
	"slices"

	"nightshift/models"
)

// restoreKeys counts what stands in lines with keys, and what holds keys without running.
func (b *Board) restoreKeys(s *models.Snapshot) {
	for i := range s.Rates {
		b.restoreRate(&s.Rates[i])
	}
	for _, c := range s.Keys { // the first concurrency key of every task
		k := b.key(KeyID{Env: c.Line.Env, Name: c.Key})
		k.Admitted[c.Line] += int32(c.Admitted)
		k.Limit = max(k.Limit, c.Limit)
	}
	for _, t := range s.Standing {
		first := true
		for need := range models.UnpackKeys(t.Keys.LimitKey, t.Keys.KeyLimit, t.Keys.MoreKeys) {
			k := b.key(idOf(t.Line.Env, need))
			k.Limit = max(k.Limit, need.Limit)
			if !first || need.Rate() {
				k.Admitted[t.Line]++
			}
			if t.Keys.Ordered && !need.Rate() {
				k.stand(turn{t.OrderKey, t.ID})
			}
			first = false
		}
	}
	for _, h := range s.Idle {
		b.holdIdle(h.Env, h.ID, h.Since, models.UnpackKeys(h.Keys.LimitKey, h.Keys.KeyLimit, h.Keys.MoreKeys))
	}
	for id, k := range b.keys { // any order: each on its own
		if k.queued > 0 {
			b.touched[id] = true
			b.opening(k)
		}
	}
}

func (b *Board) checkKeys(fresh *Board) error {
	for id := range merged(b.keys, fresh.keys) { // any order: the first difference found will do
		got, want := b.keys[id], fresh.keys[id]
		if got == nil {
			got = &Key{}
		}
		if want == nil {
			want = &Key{}
		}
		switch {
		case got.Live != want.Live || got.queued != want.queued:
			return fmt.Errorf("key %v: %d live and %d parked on the board, the rows say %d and %d", id, got.Live, got.queued, want.Live, want.queued)
		case !maps.Equal(got.Admitted, want.Admitted):
			return fmt.Errorf("key %v: %v admitted on the board, the rows say %v", id, got.Admitted, want.Admitted)
		case !maps.Equal(got.Idle, want.Idle):
			return fmt.Errorf("key %v: held idly by %v on the board, the rows say %v", id, got.Idle, want.Idle)
		case !slices.Equal(got.standing, want.standing):
			return fmt.Errorf("key %v: %v stand in order on the board, the rows say %v", id, got.standing, want.standing)
		}
		if err := b.checkMeter(id, got, want); err != nil {
			return err
		}
	}
	return nil
}

func (b *Board) checkMeter(id KeyID, got, want *Key) error {
	if (got.Meter == nil) != (want.Meter == nil) {
		return fmt.Errorf("rate %v: a limit on the board %v, in the rows %v", id, got.Meter != nil, want.Meter != nil)
	}
	if got.Meter == nil {
		return nil
	}
	if a, c := got.Meter.Left(b.Now), want.Meter.Left(b.Now); a != c {
		return fmt.Errorf("rate %v: %d left on the board, the rows say %d", id, a, c)
	}
	if a, c := got.Meter.OpensAt(b.Now), want.Meter.OpensAt(b.Now); a != c {
		return fmt.Errorf("rate %v: opens at %d on the board, the rows say %d", id, a, c)
	}
	return nil
}

// checkQueues compares the parked tasks of each gate, and says that none is parked behind a gate that is open and that
// nobody means to look at.
func (b *Board) checkQueues(fresh *Board) error {
	for id := range merged(b.parkedAt, fresh.parkedAt) { // any order: the first difference found will do
		got, want := b.parkedAt[id], fresh.parkedAt[id]
		if got == nil || want == nil || got.n != want.n {
			return fmt.Errorf("gate %v: %+v on the board, %+v by the rows", id, got, want)
		}
		if at, room := got.missing(b); room > 0 && !b.touched[at.ID] && (!got.ordered || at.ID.Rate || at.orders.top() == got) {
			return fmt.Errorf("gate %v: a task that keys are kept for might take %v", id, at.ID)
		}
		if got.ordered || got.asked || got.keep != nil {
			continue
		}
		if got.at == nil {
			return fmt.Errorf("gate %v: %d tasks wait for nothing", id, got.n)
		}
		if at, room := b.lacks(got); room > 0 && !b.touched[got.at.ID] {
			return fmt.Errorf("gate %v: %d tasks are parked behind an open gate: %d may start, they wait for %v and lack %v", id, got.n, room, got.at.ID, at.ID)
		} else if room == 0 && b.room(got.at, b.needOf(got)) > int64(got.at.Admitted[got.id.line]) && !b.touched[got.at.ID] {
			return fmt.Errorf("gate %v: %d tasks wait for the key %v, which has room", id, got.n, got.at.ID)
		}
	}
	return b.checkOrders()
}

// missing is the next key that a queue's keeper would take, and how much room it has.
func (q *queue) missing(b *Board) (*Key, int64) {
	if q.keep == nil || q.asked || q.ordered && q.keep.whole() {
		return nil, 0
	}
	return q.keep.missing(b)
}

// needOf is the limit that a queue has for the key that it waits for.
func (b *Board) needOf(q *queue) int32 {
	for _, need := range q.keys {
		if idOf(q.id.env, need) == q.at.ID {
			return need.Limit
		}
	}
	return 0
}

// checkOrders says that the first of every order whose keys have room is looked at.
func (b *Board) checkOrders() error {
	for _, q := range b.parkedAt { // any order: the first that is forgotten will do
		if !q.ordered || q.asked || q.keep != nil {
			continue
		}
		open, touched := true, false
		for _, need := range q.keys {
			k := b.key(idOf(q.id.env, need))
			touched = touched || b.touched[k.ID]
			open = open && b.room(k, need.Limit) > 0 && (need.Rate() || k.orders.top() == q && (len(k.standing) == 0 || int64(len(k.standing)) < b.room(k, need.Limit)))
		}
		if open && !touched {
			return fmt.Errorf("gate %v: %d ordered tasks are parked, and the first of them might start", q.id, q.n)
		}
	}
	return nil
}
