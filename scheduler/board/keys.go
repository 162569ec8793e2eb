package board

import (
	"cmp"
	"slices"
	"strings"

	"nightshift/models"
)

const keyGate = "key:"

// KeyID names a concurrency key of an environment.
type KeyID struct {
	Env  int32
	Name string
}

// Key is a concurrency key with those that hold it and those that wait for it.
type Key struct {
	ID       KeyID
	Limit    int32 // the largest any of its tasks named
	Live     int32
	Admitted map[models.LineID]int32 // ready tasks of a line that are neither parked nor live
	Parked   map[models.LineID]int64
}

// KeyOf is the key of a gate.
func KeyOf(gate string) (string, bool) { return strings.CutPrefix(gate, keyGate) }

func (b *Board) key(env int32, name string) *Key {
	id := KeyID{env, name}
	k := b.keys[id]
	if k == nil {
		k = &Key{ID: id, Admitted: map[models.LineID]int32{}, Parked: map[models.LineID]int64{}}
		b.keys[id] = k
	}
	return k
}

// KeyNamed finds a key, nil when nothing holds it or waits for it.
func (b *Board) KeyNamed(env int32, name string) *Key { return b.keys[KeyID{env, name}] }

// HeldKeys are the keys of an environment that live tasks hold, by name.
func (b *Board) HeldKeys(env int32) (out []*Key) {
	for id, k := range b.keys { // any order: sorted below
		if id.Env == env && k.Live > 0 {
			out = append(out, k)
		}
	}
	slices.SortFunc(out, func(a, b *Key) int { return cmp.Compare(a.ID.Name, b.ID.Name) })
	return out
}

// Waiters is how many ready tasks wait for the key: in their lines or behind it.
func (k *Key) Waiters() (n int64) {
	for _, parked := range k.Parked { // any order: a sum
		n += parked
	}
	for _, admitted := range k.Admitted { // any order: a sum
		n += int64(admitted)
	}
	return n
}

// Open says whether a task may start as far as its workflow and its key go.
func (b *Board) Open(row *models.Task) bool {
	if b.flowShut(row) {
		return false
	}
	if row.LimitKey == "" {
		return true
	}
	k := b.KeyNamed(row.Env, row.LimitKey)
	return k == nil || k.Live < row.KeyLimit
}

// Admits says whether a task that becomes ready may stand in its line, or is parked at once.
func (b *Board) Admits(row *models.Task) bool {
	if b.flowShut(row) {
		return false
	}
	if row.LimitKey == "" {
		return true
	}
	k := b.KeyNamed(row.Env, row.LimitKey)
	if k == nil {
		return true
	}
	line := LineOf(row)
	return k.Live < row.KeyLimit && k.Admitted[line] < row.KeyLimit && k.Parked[line] == 0
}

// Admit counts a task that stands in its line with a key; Retract takes that back.
func (b *Board) Admit(row *models.Task) {
	if row.LimitKey != "" {
		k := b.key(row.Env, row.LimitKey)
		k.Limit = max(k.Limit, row.KeyLimit)
		k.Admitted[LineOf(row)]++
	}
}

// Retract counts one admitted task less: it started, was parked, or left.
func (b *Board) Retract(row *models.Task) {
	if row.LimitKey == "" {
		return
	}
	k := b.key(row.Env, row.LimitKey)
	line := LineOf(row)
	if k.Admitted[line]--; k.Admitted[line] <= 0 {
		delete(k.Admitted, line)
	}
	b.touch(k)
}

// Park counts a task that waits behind its key; Unpark takes that back.
func (b *Board) Park(row *models.Task) {
	b.parked++
	if lane := b.Lanes[row.Lane]; lane != nil {
		lane.Parked++
	}
	if b.parkFlow(row.Gate, 1) {
		return
	}
	name, ok := KeyOf(row.Gate)
	if !ok {
		return
	}
	k := b.key(row.Env, name)
	k.Limit = max(k.Limit, row.KeyLimit)
	k.Parked[LineOf(row)]++
	b.touch(k)
}

// Unpark counts one parked task less.
func (b *Board) Unpark(row *models.Task) {
	b.parked--
	if lane := b.Lanes[row.Lane]; lane != nil {
		lane.Parked--
	}
	if b.parkFlow(row.Gate, -1) {
		return
	}
	name, ok := KeyOf(row.Gate)
	if !ok {
		return
	}
	k := b.key(row.Env, name)
	line := LineOf(row)
	if k.Parked[line]--; k.Parked[line] <= 0 {
		delete(k.Parked, line)
	}
	b.touch(k)
}

// holdKey and freeKey count the live tasks of a key.
func (b *Board) holdKey(row *models.Task) {
	if row.LimitKey != "" {
		k := b.key(row.Env, row.LimitKey)
		k.Limit = max(k.Limit, row.KeyLimit)
		k.Live++
	}
}

func (b *Board) freeKey(row *models.Task) {
	if row.LimitKey != "" {
		k := b.key(row.Env, row.LimitKey)
		k.Live--
		b.touch(k)
	}
}

func (b *Board) touch(k *Key) {
	if k.Live <= 0 && len(k.Admitted) == 0 && len(k.Parked) == 0 {
		delete(b.keys, k.ID)
		delete(b.touched, k.ID)
		return
	}
	b.touched[k.ID] = true
}

// KeyAsks lists what may come back from behind keys that have room: the next of each line, at most most asks.
func (b *Board) KeyAsks(most int) []models.LineAsk {
	var asks []models.LineAsk
	ids := make([]KeyID, 0, len(b.touched))
	for id := range b.touched { // any order: sorted below
		ids = append(ids, id)
	}
	slices.SortFunc(ids, func(a, b KeyID) int { return cmp.Or(cmp.Compare(a.Env, b.Env), cmp.Compare(a.Name, b.Name)) })
	for _, id := range ids {
		if len(asks) >= most {
			break
		}
		delete(b.touched, id)
		k := b.keys[id]
		if k == nil {
			continue
		}
		for _, line := range sortedLines(k.Parked) {
			if room := k.Limit - k.Live - k.Admitted[line]; room > 0 {
				asks = append(asks, models.LineAsk{Line: line, Gate: keyGate + id.Name, Limit: int(room)})
			}
		}
	}
	return asks
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
