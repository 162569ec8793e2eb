package board

import (
	"slices"

	"nightshift/models"
)

// agedAfter is the ageing bound: how long a task of a kind may wait before others no longer pass it.
var agedAfter = [4]models.Instant{models.Realtime: 30e6, models.IO: 2 * 60e6, models.Compute: 15 * 60e6, models.Batch: 30 * 60e6}

// AgedAfter is the ageing bound of a kind.
func AgedAfter(kind models.KindName) models.Instant { return agedAfter[kind] }

// keep is the keys that are taken ahead for a task past its ageing bound. They are taken in key order, so that two such
// tasks never wait for each other, and are the task's until it starts. It lives on the board alone: a new brain takes them
// anew as they free.
type keep struct {
	entry *Entry
	keys  []models.TaskKey // in key order
	taken int              // of keys
}

// has says whether a key is kept for the task.
func (p *keep) has(k models.TaskKey) bool { return p != nil && slices.Contains(p.keys[:p.taken], k) }

// whole says that all keys are taken.
func (p *keep) whole() bool { return p.taken == len(p.keys) }

// missing is the next key to take, and how much room it has. With all keys taken it is one that does not let the task start
// all the same: others whose limit is larger may have started beside it; else any.
func (p *keep) missing(b *Board) (*Key, int64) {
	if !p.whole() {
		k := b.key(idOf(p.entry.Row.Env, p.keys[p.taken]))
		return k, b.room(k, p.keys[p.taken].Limit)
	}
	for _, need := range p.keys {
		k := b.key(idOf(p.entry.Row.Env, need))
		if room := b.room(k, need.Limit) + 1; room <= 0 {
			return k, room
		}
	}
	return b.key(idOf(p.entry.Row.Env, p.keys[0])), 1
}

// takes says whether another key can be taken.
func (b *Board) takes(p *keep) bool {
	_, room := p.missing(b)
	return room > 0
}

// mayTake says whether the first task of a queue may be past its ageing bound and could take its first key now.
func (b *Board) mayTake(q *queue) bool {
	ages := max(q.agesAt, models.Instant(q.first.AgeKey)+AgedAfter(b.kindOf(q.id.line.Lane)))
	if q.ordered {
		ages = q.agesAt
	}
	if ages > b.Now || q.keep != nil {
		return false
	}
	need := q.keys[0]
	return b.room(b.key(idOf(q.id.env, need)), need.Limit) > 0 && b.ends(q.id.env, q.keys)
}

// ends says that whoever holds the keys will let go of them by itself: nobody waits for a key that a dead task holds.
func (b *Board) ends(env int32, keys []models.TaskKey) bool {
	for _, need := range keys {
		if k := b.keys[idOf(env, need)]; k != nil && !need.Rate() && int(need.Limit) <= len(k.Idle) {
			return false
		}
	}
	return true
}

// Take keeps the keys of a parked task that are free, in key order up to the first that is not. It answers whether the
// task has them all. Of a queue only one task has keys kept.
func (b *Board) Take(row *models.Task) bool {
	p := b.keeps[row.ID]
	q := b.queueAt(row)
	if p == nil {
		if q == nil || q.keep != nil || !b.ends(row.Env, q.keys) {
			return false
		}
		p = &keep{entry: b.hold(row), keys: q.keys}
		p.entry.Row = *row
		p.entry.keep = p
		b.keeps[row.ID] = p
	}
	for !p.whole() {
		k, room := p.missing(b)
		if room <= 0 {
			break
		}
		k.kept++
		p.taken++
	}
	if p.taken == 0 {
		b.Unkeep(row.ID)
		return false
	}
	if q != nil {
		b.setKeep(q, p)
	}
	return p.whole()
}

// Unkeep gives back what was kept for a task: it starts, or leaves, or cannot start.
func (b *Board) Unkeep(id models.ID) {
	p := b.keeps[id]
	if p == nil {
		return
	}
	delete(b.keeps, id)
	for _, need := range p.keys[:p.taken] {
		k := b.key(idOf(p.entry.Row.Env, need))
		k.kept--
		b.touch(k)
	}
	row := &p.entry.Row
	if q := b.queueAt(row); q != nil && q.keep == p {
		b.setKeep(q, nil)
	}
	p.entry.keep = nil
	b.release(p.entry)
}

// setKeep says for which task of a queue keys are kept, and lets the queue wait for what that one misses.
func (b *Board) setKeep(q *queue, p *keep) {
	b.unwait(q)
	q.keep = p
	b.rewait(q)
}

// Keeper is a task that keys are kept for.
func (b *Board) Keeper(env int32, need models.TaskKey) *models.Task {
	var found *models.Task
	for id, p := range b.keeps { // any order: the smallest id
		if p.entry.Row.Env == env && p.has(need) && (found == nil || id.Compare(found.ID) < 0) {
			found = &p.entry.Row
		}
	}
	return found
}

// IdleKeeps are the tasks that have keys kept in vain: nothing of their line may start, no worker could run them, or a key
// that they miss will not be let go of.
func (b *Board) IdleKeeps() (out []models.ID) {
	for id, p := range b.keeps { // any order: sorted below
		row := &p.entry.Row
		if !b.Startable(row) || !b.InTurn(row) || !b.ends(row.Env, p.keys) {
			out = append(out, id)
		}
	}
	slices.SortFunc(out, models.ID.Compare)
	return out
}

// InTurn says that a task is not ordered, or that none before it on its keys is ready.
func (b *Board) InTurn(row *models.Task) bool {
	if !row.Has(models.Ordered) {
		return true
	}
	for need := range row.Keys() {
		if k := b.keys[idOf(row.Env, need)]; k != nil && !need.Rate() && !k.next(row, 1) {
			return false
		}
	}
	return true
}

// Startable says that nothing but its keys and busy workers holds a task back.
func (b *Board) Startable(row *models.Task) bool {
	if at := b.standingOf(LineOf(row)); b.flowShut(row) || b.Short(row) != nil || b.shutBy(&at, false) != "" {
		return false
	}
	lane := b.Lanes[row.Lane]
	for _, w := range b.Workers { // any order: whether there is one
		if w.State == models.WorkerActive && b.Serves(w, row.Env, lane) && b.Fits(w, row.Class) {
			return true
		}
	}
	return false
}
