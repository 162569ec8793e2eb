package engine

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"nightshift/models"
	"nightshift/scheduler/board"
)

// Unlock ends the leases of those that hold a concurrency key.
type Unlock struct {
	Env    int32  `json:"env"`
	Key    string `json:"key"`
	Reason string `json:"reason,omitempty"`
}

// Lock is a concurrency key that tasks hold.
type Lock struct {
	Key     string   `json:"key"`
	Limit   int32    `json:"limit"` // the largest any of its tasks named
	Holders []Holder `json:"holders"`
	Waiters int64    `json:"waiters"`
}

// Holder is a task that holds a key, with the moment it last started. An ordered one may hold it without running.
type Holder struct {
	Task  models.ID      `json:"task"`
	Since models.Instant `json:"since"`
}

// locks lists the keys of an environment that are held.
func (e *Engine) locks(env int32) []Lock {
	out := []Lock{}
	holders := map[string][]Holder{}
	for _, lease := range e.sortedLeases() {
		if row := lease.Row(); row.Env == env {
			for need := range row.Keys() {
				if !need.Rate() {
					holders[need.Name] = append(holders[need.Name], Holder{row.ID, row.StartedAt})
				}
			}
		}
	}
	for _, k := range e.board.HeldKeys(env) {
		lock := Lock{Key: k.ID.Name, Limit: k.Limit, Holders: holders[k.ID.Name], Waiters: k.Waiters()}
		lock.Holders = append(lock.Holders, idleHolders(k)...)
		out = append(out, lock)
	}
	return out
}

func idleHolders(k *board.Key) (out []Holder) {
	for id, since := range k.Idle { // any order: sorted below
		out = append(out, Holder{id, since})
	}
	slices.SortFunc(out, func(a, b Holder) int { return cmp.Or(cmp.Compare(a.Since, b.Since), a.Task.Compare(b.Task)) })
	return out
}

// holders are the live tasks of a concurrency key.
func (e *Engine) holders(env int32, key string) (held []*board.Lease) {
	for _, lease := range e.sortedLeases() {
		row := lease.Row()
		for need := range row.Keys() {
			if row.Env == env && need.Name == key && !need.Rate() {
				held = append(held, lease)
			}
		}
	}
	return held
}

// unlock sends the holders of a key back to their lines: their tokens are lost.
func (e *Engine) unlock(cmd *Command) (*Answer, error) {
	x := cmd.Unlock
	held := e.holders(x.Env, x.Key)
	if k := e.board.KeyNamed(x.Env, x.Key); len(held) == 0 && k != nil && len(k.Idle) > 0 {
		return nil, models.Errorf(models.StateConflict, "the key %q is held by %s, which does not run: redrive, discard or cancel it", x.Key, idleHolders(k)[0].Task.Text(models.TaskPrefix))
	}
	if len(held) == 0 {
		return nil, models.Errorf(models.NotFound, "nobody holds the key %q", x.Key)
	}
	for _, lease := range held {
		e.release(lease, nil)
	}
	e.audit(cmd, x.Env, "lock.end", x.Key, x.Reason)
	return &Answer{}, nil
}

// mostNamed is how many holders of a key are named to whoever waits for it.
const mostNamed = 10

// keyBlocks says which of a task's keys do not let it start now.
func (e *Engine) keyBlocks(row *models.Task) (out []Block) {
	for need := range row.Keys() {
		k := e.board.KeyFor(row.Env, need)
		if k == nil || e.board.Lets(k, need, row) {
			continue
		}
		if need.Rate() {
			out = append(out, e.rateBlock(k, row))
			continue
		}
		out = append(out, e.heldBlock(k, need, row))
	}
	if keyed, _ := board.KeyGate(row.Gate); keyed && len(out) == 0 {
		out = append(out, Block{Reason: "concurrency_key", Detail: "its keys are free: it is about to return to its line"})
	}
	return out
}

func (e *Engine) rateBlock(k *board.Key, row *models.Task) Block {
	opens := k.Meter.OpensAt(e.now)
	detail := fmt.Sprintf("the rate %s lets %d start in %d s: it opens at %s", k.ID.Name, k.Meter.Terms.Limit, int64(k.Meter.Terms.Per.Seconds()), opens.Time().Format("2006-01-02T15:04:05.000Z"))
	if opens <= e.now {
		detail = fmt.Sprintf("the rate %s lets one start, which is kept for another task", k.ID.Name)
	}
	return Block{Reason: "rate_limit", Key: k.ID.Name, OpensAt: opens.Time().Format(time.RFC3339Nano), Detail: detail}
}

func (e *Engine) heldBlock(k *board.Key, need models.TaskKey, row *models.Task) Block {
	b := Block{Reason: "concurrency_key", Key: need.Name}
	for _, lease := range e.holders(row.Env, need.Name) {
		b.Holders = append(b.Holders, lease.Row().ID.Text(models.TaskPrefix))
	}
	for _, idle := range idleHolders(k) {
		b.Holders = append(b.Holders, idle.Task.Text(models.TaskPrefix))
	}
	held, names := int32(len(b.Holders)), b.Holders
	if n := len(names) - mostNamed; n > 0 {
		b.Holders = b.Holders[:mostNamed]
		names = append(slices.Clone(b.Holders), fmt.Sprintf("%d more", n))
	}
	keeper := e.board.Keeper(row.Env, need)
	switch {
	case held >= need.Limit:
		b.Detail = fmt.Sprintf("the key %s is held by %s", need.Name, strings.Join(names, ", "))
	case keeper != nil && keeper.ID != row.ID:
		b.Detail = fmt.Sprintf("the key %s is kept for %s, which has waited past its bound", need.Name, keeper.ID.Text(models.TaskPrefix))
	case row.Has(models.Ordered) && len(names) == 0:
		b.Detail = fmt.Sprintf("tasks of the key %s that became ready before it have not started", need.Name)
	case row.Has(models.Ordered):
		b.Detail = fmt.Sprintf("tasks of the key %s that became ready before it have not started; it is held by %s", need.Name, strings.Join(names, ", "))
	default:
		b.Detail = fmt.Sprintf("the key %s is held by a task that is about to start", need.Name)
	}
	return b
}
