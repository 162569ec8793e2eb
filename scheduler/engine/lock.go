package engine

import (
	"nightshift/models"
	"nightshift/scheduler/board"
)

// Unlock ends the leases of those that hold a concurrency key.
type Unlock struct {
	Env    int32  `json:"env"`
	Key    string `json:"key"`
	Reason string `json:"reason,omitempty"`
}

// Lock is a concurrency key that live tasks hold.
type Lock struct {
	Key     string   `json:"key"`
	Limit   int32    `json:"limit"` // the largest any of its tasks named
	Holders []Holder `json:"holders"`
	Waiters int64    `json:"waiters"`
}

// Holder is a live task with the moment it started.
type Holder struct {
	Task  models.ID      `json:"task"`
	Since models.Instant `json:"since"`
}

// locks lists the keys of an environment that are held.
func (e *Engine) locks(env int32) []Lock {
	out := []Lock{}
	holders := map[string][]Holder{}
	for _, lease := range e.sortedLeases() {
		if row := lease.Row(); row.Env == env && row.LimitKey != "" {
			holders[row.LimitKey] = append(holders[row.LimitKey], Holder{row.ID, row.StartedAt})
		}
	}
	for _, k := range e.board.HeldKeys(env) {
		out = append(out, Lock{Key: k.ID.Name, Limit: k.Limit, Holders: holders[k.ID.Name], Waiters: k.Waiters()})
	}
	return out
}

// unlock sends the holders of a key back to their lines: their tokens are lost.
func (e *Engine) unlock(cmd *Command) (*Answer, error) {
	x := cmd.Unlock
	var held []*board.Lease
	for _, lease := range e.sortedLeases() {
		if row := lease.Row(); row.Env == x.Env && row.LimitKey == x.Key && x.Key != "" {
			held = append(held, lease)
		}
	}
	if len(held) == 0 {
		return nil, models.Errorf(models.NotFound, "nobody holds the key %q", x.Key)
	}
	for _, lease := range held {
		e.release(lease)
	}
	e.audit(cmd, x.Env, "lock.end", x.Key, x.Reason)
	return &Answer{}, nil
}
