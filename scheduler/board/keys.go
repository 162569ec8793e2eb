package board

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math"
	"slices"
	"strings"

	"nightshift/models"
	"nightshift/scheduler/rate"
)

// The gates of tasks that wait for keys: one concurrency key of limit 1 is named by itself, any other set of keys by a digest,
// so that the tasks behind a gate all need exactly the same.
const (
	keyGate  = "key:"
	keysGate = "keys:"
	rateGate = "rate:"
)

// KeyGate says that a gate is one of keys, and whether of rate keys alone.
func KeyGate(gate string) (keyed, rates bool) {
	rates = strings.HasPrefix(gate, rateGate)
	return rates || strings.HasPrefix(gate, keyGate) || strings.HasPrefix(gate, keysGate), rates
}

// KeyID names a concurrency key of an environment, or a rate key.
type KeyID struct {
	Env  int32
	Name string
	Rate bool
}

// Key is a key with those that hold it and those that wait for it.
type Key struct {
	ID       KeyID
	Limit    int32                        // of a concurrency key: the largest any of its tasks named
	Live     int32                        // tasks that run with it
	Idle     map[models.ID]models.Instant // ordered tasks that hold it without running, and since when
	Admitted map[models.LineID]int32      // ready tasks of a line that are neither parked nor live
	Meter    *rate.Meter                  // of a rate key with a limit

	kept     int32  // taken ahead for tasks past their ageing bound
	queued   int64  // parked tasks that need it, whatever they wait for
	standing []turn // ordered tasks that are ready and not parked, in order
	waits    map[models.LineID]*waitHeap
	orders   orderHeap
	opens    models.Instant // when it is looked at again, by time; 0: not by time
}

// turn is where an ordered task stands in the order of its keys.
type turn struct {
	order int64
	id    models.ID
}

func (p turn) compare(o turn) int { return cmp.Or(cmp.Compare(p.order, o.order), p.id.Compare(o.id)) }

// many is the room of a key that holds nothing back.
const many = math.MaxInt32

func idOf(env int32, k models.TaskKey) KeyID { return KeyID{env, k.Name, k.Rate()} }

func (b *Board) key(id KeyID) *Key {
	k := b.keys[id]
	if k == nil {
		k = &Key{ID: id, Admitted: map[models.LineID]int32{}}
		b.keys[id] = k
	}
	return k
}

// KeyNamed finds a concurrency key, nil when nothing holds it or waits for it.
func (b *Board) KeyNamed(env int32, name string) *Key { return b.keys[KeyID{Env: env, Name: name}] }

// KeyFor finds a key that a task of the environment needs.
func (b *Board) KeyFor(env int32, k models.TaskKey) *Key { return b.keys[idOf(env, k)] }

// HeldKeys are the concurrency keys of an environment that tasks hold, by name.
func (b *Board) HeldKeys(env int32) (out []*Key) {
	for id, k := range b.keys { // any order: sorted below
		if id.Env == env && !id.Rate && k.Holders() > 0 {
			out = append(out, k)
		}
	}
	slices.SortFunc(out, func(a, b *Key) int { return cmp.Compare(a.ID.Name, b.ID.Name) })
	return out
}

// Holders is how many tasks hold the key.
func (k *Key) Holders() int32 { return k.Live + int32(len(k.Idle)) }

// Waiters is how many ready tasks wait for the key: in their lines or behind a gate.
func (k *Key) Waiters() int64 {
	n := k.queued
	for _, admitted := range k.Admitted { // any order: a sum
		n += int64(admitted)
	}
	return n
}

// room is how many more tasks may start with the key, where each says that limit of them may hold it.
func (b *Board) room(k *Key, limit int32) int64 {
	switch {
	case k == nil, k.ID.Rate && k.Meter == nil:
		return many
	case k.ID.Rate:
		return k.Meter.Left(b.Now) - int64(k.kept)
	}
	return int64(limit) - int64(k.Holders()) - int64(k.kept)
}

// Open says whether a task may start as far as its workflow, its budgets and its keys go.
func (b *Board) Open(row *models.Task) bool {
	if b.flowShut(row) || b.Short(row) != nil {
		return false
	}
	if !row.Keyed() {
		return true
	}
	for need := range row.Keys() {
		if k := b.keys[idOf(row.Env, need)]; k != nil && !b.Lets(k, need, row) {
			return false
		}
	}
	return true
}

// Lets says whether one of a task's keys lets it start now.
func (b *Board) Lets(k *Key, need models.TaskKey, row *models.Task) bool {
	room := b.room(k, need.Limit)
	if b.keeps[row.ID].has(need) {
		room++
	}
	return room > 0 && (!row.Has(models.Ordered) || need.Rate() || k.next(row, room))
}

// Admits says whether a task that becomes ready may stand in its line, or is parked at once.
func (b *Board) Admits(row *models.Task) bool {
	if b.flowShut(row) || b.Short(row) != nil {
		return false
	}
	if !row.Keyed() {
		return true
	}
	line, queued := LineOf(row), false
	for need := range row.Keys() {
		k := b.keys[idOf(row.Env, need)]
		if k == nil {
			continue
		}
		room := b.room(k, need.Limit)
		switch {
		case row.Has(models.Ordered):
			if room <= 0 || !need.Rate() && !k.next(row, room) {
				return false
			}
		case room <= 0, int64(k.Admitted[line]) >= b.most(k, need.Limit, room):
			return false
		}
		queued = queued || k.queued > 0
	}
	if !queued || row.Has(models.Ordered) {
		return true
	}
	q := b.parkedAt[queueID{row.Env, gateName(row), line}]
	return q == nil || q.n == 0
}

// most is how many tasks with a key may stand in a line: as many as may hold it, or as its rate lets pass now.
func (b *Board) most(k *Key, limit int32, room int64) int64 {
	if k.ID.Rate {
		return room
	}
	return int64(limit)
}

// Admit counts a task that stands in its line with its keys; Retract takes that back.
func (b *Board) Admit(row *models.Task) {
	if !row.Keyed() {
		return
	}
	line := LineOf(row)
	for need := range row.Keys() {
		k := b.key(idOf(row.Env, need))
		k.Limit = max(k.Limit, need.Limit)
		k.Admitted[line]++
		if row.Has(models.Ordered) && !need.Rate() {
			k.stand(turn{row.OrderKey, row.ID})
		}
	}
}

// Retract counts one admitted task less: it started, was parked, or left.
func (b *Board) Retract(row *models.Task) {
	if !row.Keyed() {
		return
	}
	line := LineOf(row)
	for need := range row.Keys() {
		k := b.key(idOf(row.Env, need))
		if k.Admitted[line]--; k.Admitted[line] <= 0 {
			delete(k.Admitted, line)
		}
		if row.Has(models.Ordered) && !need.Rate() {
			k.leave(turn{row.OrderKey, row.ID})
		}
		b.touch(k)
	}
}

// Park counts a task that waits behind a gate; Unpark takes that back.
func (b *Board) Park(row *models.Task) {
	b.parked++
	b.AddQueued(row.Env, 1)
	b.appears(row.Env, row.Class, 1)
	if lane := b.Lanes[row.Lane]; lane != nil {
		lane.Parked++
	}
	if row.Gate == models.ModelGate {
		b.parkModel(LineOf(row), 1)
		return
	}
	if b.parkFlow(row.Gate, 1) || b.parkMoney(row.Gate, LineOf(row), 1, models.Mark{AgeKey: row.AgeKey, ID: row.ID}) {
		return
	}
	if keyed, _ := KeyGate(row.Gate); !keyed {
		return
	}
	first := models.Mark{AgeKey: row.AgeKey, ID: row.ID}
	if row.Has(models.Ordered) {
		first = models.Mark{AgeKey: row.OrderKey}
	}
	b.enqueue(b.queueFor(row.Gate, LineOf(row), keyText(row)), 1, first)
}

// Unpark counts one parked task less.
func (b *Board) Unpark(row *models.Task) {
	b.parked--
	b.AddQueued(row.Env, -1)
	b.appears(row.Env, row.Class, -1)
	if lane := b.Lanes[row.Lane]; lane != nil {
		lane.Parked--
	}
	if row.Gate == models.ModelGate {
		b.parkModel(LineOf(row), -1)
		return
	}
	if b.parkFlow(row.Gate, -1) || b.unparkMoney(row) {
		return
	}
	if q := b.queueAt(row); q != nil {
		b.dequeue(q, row)
	}
}

func keyText(row *models.Task) models.KeyText {
	return models.KeyText{LimitKey: row.LimitKey, KeyLimit: row.KeyLimit, MoreKeys: row.MoreKeys, Ordered: row.Has(models.Ordered)}
}

// holdKeys and freeKeys count the live tasks of keys.
func (b *Board) holdKeys(row *models.Task) {
	if !row.Keyed() {
		return
	}
	for need := range row.Keys() {
		if !need.Rate() {
			k := b.key(idOf(row.Env, need))
			k.Limit = max(k.Limit, need.Limit)
			k.Live++
		}
	}
}

func (b *Board) freeKeys(row *models.Task) {
	if !row.Keyed() {
		return
	}
	for need := range row.Keys() {
		if !need.Rate() {
			k := b.key(idOf(row.Env, need))
			k.Live--
			b.touch(k)
		}
	}
}

// HoldIdle says that an ordered task holds its keys without running; LetGo takes that back.
func (b *Board) HoldIdle(row *models.Task) {
	b.holdIdle(row.Env, row.ID, row.StartedAt, row.Keys())
}

func (b *Board) holdIdle(env int32, id models.ID, since models.Instant, keys func(func(models.TaskKey) bool)) {
	for need := range keys {
		if !need.Rate() {
			k := b.key(idOf(env, need))
			k.Limit = max(k.Limit, need.Limit)
			if k.Idle == nil {
				k.Idle = map[models.ID]models.Instant{}
			}
			k.Idle[id] = since
		}
	}
}

// LetGo takes HoldIdle back.
func (b *Board) LetGo(row *models.Task) {
	for need := range row.Keys() {
		if !need.Rate() {
			k := b.key(idOf(row.Env, need))
			delete(k.Idle, row.ID)
			b.touch(k)
		}
	}
}

// touch says that a key may have got room, or is not needed any more.
func (b *Board) touch(k *Key) {
	if k.Live <= 0 && len(k.Idle) == 0 && len(k.Admitted) == 0 && k.queued == 0 && k.kept == 0 && k.Meter == nil {
		delete(b.keys, k.ID)
		delete(b.touched, k.ID)
		return
	}
	b.touched[k.ID] = true
}

// gateName is the gate that a task is parked at for its keys.
func gateName(row *models.Task) string {
	if row.MoreKeys == "" && row.KeyLimit == 1 && !row.Has(models.Ordered) {
		return keyGate + row.LimitKey
	}
	keys := inKeyOrder(row.Keys())
	first, limit, more := models.PackKeys(keys)
	sum := sha256.Sum256(fmt.Appendf(nil, "%v %d:%d:%s%s", row.Has(models.Ordered), limit, len(first), first, more))
	if first == "" {
		return rateGate + hex.EncodeToString(sum[:16])
	}
	return keysGate + hex.EncodeToString(sum[:16])
}

// inKeyOrder sorts keys: concurrency keys by name, then rate keys by name.
func inKeyOrder(keys func(func(models.TaskKey) bool)) []models.TaskKey {
	var out []models.TaskKey
	for k := range keys {
		out = append(out, k)
	}
	slices.SortFunc(out, func(a, b models.TaskKey) int {
		if a.Rate() != b.Rate() {
			if a.Rate() {
				return 1
			}
			return -1
		}
		return cmp.Compare(a.Name, b.Name)
	})
	return out
}

func sortedLines[V any](m map[models.LineID]V) []models.LineID {
	out := make([]models.LineID, 0, len(m))
	for id := range m { // any order: sorted below
		out = append(out, id)
	}
	slices.SortFunc(out, CompareLines)
	return out
}

// CompareLines orders lines by lane, environment and class.
func CompareLines(a, b models.LineID) int {
	return cmp.Or(cmp.Compare(a.Lane, b.Lane), cmp.Compare(a.Env, b.Env), cmp.Compare(a.Class, b.Class))
}

func compareKeys(a, b KeyID) int {
	rates := 0
	if a.Rate != b.Rate {
		rates = 1
		if b.Rate {
			rates = -1
		}
	}
	return cmp.Or(cmp.Compare(a.Env, b.Env), rates, cmp.Compare(a.Name, b.Name))
}
