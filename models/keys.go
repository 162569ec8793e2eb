package models

import (
	"iter"
	"strconv"
	"strings"
)

// TaskKey is a key that a task needs to start: a concurrency key, which it then holds while it lives, or a rate key.
type TaskKey struct {
	Name  string
	Limit int32 // how many live tasks may hold a concurrency key; 0: it is a rate key
}

// Rate says that it is a rate key.
func (k TaskKey) Rate() bool { return k.Limit == 0 }

// MostKeys is how many concurrency keys, and how many rate keys, a task has at most.
const MostKeys = 16

// SetKeys writes keys into the row: the first concurrency key in columns of its own, what is beyond in one text.
func (t *Task) SetKeys(keys []TaskKey) { t.LimitKey, t.KeyLimit, t.MoreKeys = PackKeys(keys) }

// PackKeys gives keys the form they have in a row.
func PackKeys(keys []TaskKey) (first string, limit int32, more string) {
	var b strings.Builder
	for _, k := range keys {
		if first == "" && !k.Rate() {
			first, limit = k.Name, k.Limit
			continue
		}
		b.WriteString(strconv.Itoa(int(k.Limit)) + ":" + strconv.Itoa(len(k.Name)) + ":" + k.Name)
	}
	return first, limit, b.String()
}

// Keyed says that the task needs any key.
func (t *Task) Keyed() bool { return t.LimitKey != "" || t.MoreKeys != "" }

// Keys are all keys of the task, in the order they were given, the concurrency keys first.
func (t *Task) Keys() iter.Seq[TaskKey] { return UnpackKeys(t.LimitKey, t.KeyLimit, t.MoreKeys) }

// UnpackKeys reads what PackKeys wrote.
func UnpackKeys(first string, limit int32, more string) iter.Seq[TaskKey] {
	return func(yield func(TaskKey) bool) {
		if first != "" && !yield(TaskKey{first, max(1, limit)}) {
			return
		}
		for rest := more; rest != ""; {
			head, after, _ := strings.Cut(rest, ":")
			size, after, ok := strings.Cut(after, ":")
			most, err := strconv.ParseInt(head, 10, 32)
			n, bad := strconv.Atoi(size)
			if !ok || err != nil || bad != nil || n < 0 || n > len(after) {
				return // written by PackKeys alone
			}
			if !yield(TaskKey{after[:n], int32(most)}) {
				return
			}
			rest = after[n:]
		}
	}
}

// RateSlices is into how many parts the time of a rate is cut where what passed is summed up.
const RateSlices = 256

// SliceLength is the length of a part in microseconds.
func (r *RateLimit) SliceLength() int64 { return max(1, r.PerSeconds*1_000_000/RateSlices) }

// RateLimit is how often tasks of an environment that name its key may start.
type RateLimit struct {
	Env        int32
	Key        string
	Limit      int64 // starts in any PerSeconds
	PerSeconds int64
	Burst      int64 // at once; 0: as many as Limit
	FromBatch  int64 // what passed in batches before this one does not count
	CreatedAt  Instant
	UpdatedAt  Instant
	Version    int64
}

// RatePass is what passed under a rate limit in one batch, and the rest of its meter's state after it. Rows of it are only
// ever added; old ones go once they count no longer.
type RatePass struct {
	Env    int32
	Key    string
	At     Instant
	N      int64 // tasks that started
	Credit int64 // of the meter's bucket, as of At
}

// RateRef names a rate limit.
type RateRef struct {
	Env int32
	Key string
}

// RateState is a rate limit with what passed lately, as a board is rebuilt from it.
type RateState struct {
	RateLimit
	Credit int64   // of the last row there is
	At     Instant // 0: there is none
	Passes []RateSum
}

// RateSum is what passed in one slice of a rate's time, up to a moment.
type RateSum struct {
	At Instant
	N  int64
}

// ParkedCount is how many tasks of a line are parked behind a gate.
type ParkedCount struct {
	Line  LineID
	Gate  string
	Count int64
	First int64   // the smallest age key among them
	Order int64   // the smallest order key of the gate; 0: its tasks have none
	Keys  KeyText // of any one of them
}

// KeyText is the keys of a task as its row has them.
type KeyText struct {
	LimitKey string
	KeyLimit int32
	MoreKeys string
	Ordered  bool
}

// StandingTask is a ready, ungated task that has more than one key, a rate key, or an order.
type StandingTask struct {
	Line     LineID
	ID       ID
	Keys     KeyText
	OrderKey int64
}

// IdleHolder is an ordered task that holds its keys without running.
type IdleHolder struct {
	Env   int32
	ID    ID
	Since Instant
	Keys  KeyText
}

// KeyCount says how many ready, ungated tasks of a line want a concurrency key.
type KeyCount struct {
	Line     LineID
	Key      string
	Admitted int64
	Limit    int32 // the largest key limit among them
}
