package engine

import (
	"cmp"
	"slices"

	"nightshift/models"
	"nightshift/scheduler/board"
)

// triedAgain is how long no key is taken for a task that could not start anyway: nothing of its line may, or another stands
// before it in the order of its keys, who may need the very key.
const triedAgain = 1_000_000

// decideUnparks lets parked tasks back whose keys have room, those that wait longest first, and takes keys for those past
// their ageing bound.
func (e *Engine) decideUnparks() {
	rows := e.unparks
	e.unparks = nil
	slices.SortStableFunc(rows, func(a, b models.Task) int {
		return cmp.Or(cmp.Compare(a.AgeKey, b.AgeKey), a.ID.Compare(b.ID))
	})
	for i := range rows {
		row := &rows[i]
		if c := e.b.rows[row.ID]; c != nil {
			row = &c.row
		} else if held := e.board.Held(row.ID); held != nil {
			row = &held.Row
		}
		if row.State != models.Ready || row.Gate != rows[i].Gate || row.Gate == "" {
			e.board.Stays(&rows[i], 0)
			continue
		}
		copied := *row
		if models.IsBudgetGate(row.Gate) {
			e.decideReturn(&copied)
			continue
		}
		e.decideUnpark(&copied)
	}
}

func (e *Engine) decideUnpark(row *models.Task) {
	e.board.Read(row)
	ages := row.ReadyAt + board.AgedAfter(e.kindOf(row))
	if aged := ages <= e.now; aged && !(e.board.Startable(row) && e.board.InTurn(row)) {
		e.board.Unkeep(row.ID)
		ages = e.now + triedAgain
	} else if aged && !e.board.Take(row) {
		ages = 0
	}
	if !e.board.Returns(row) {
		e.board.Stays(row, ages)
		return
	}
	c := e.enlist(row)
	e.unpark(c)
	if e.board.Shut(c.row.Workflow) != 0 || e.board.Short(&c.row) != nil {
		e.board.Unkeep(c.row.ID)
		e.park(c) // its keys have room, its workflow or a budget not
	} else {
		e.board.Admit(&c.row)
		e.board.Stand(&c.row)
		e.dirty = true
	}
	e.sync(c)
}

func (e *Engine) kindOf(row *models.Task) models.KindName {
	if lane := e.laneOf(row); lane != nil {
		return lane.Kind
	}
	return models.Batch
}

// unpark takes a task out from behind its gate; whoever calls gives it its next place.
func (e *Engine) unpark(c *change) {
	e.board.Unpark(&c.row)
	c.row.Gate, c.row.UpdatedAt = "", e.now
	e.board.Counted.Unparkings++
}

// idles says that an ordered task holds its keys without running, or does so no longer.
func (e *Engine) idles(c *change, now bool) {
	if now {
		e.board.HoldIdle(&c.row)
		return
	}
	e.board.LetGo(&c.row)
}

// pass counts a start under the task's rates.
func (e *Engine) pass(row *models.Task) {
	if row.MoreKeys == "" { // the first key of a row is none of a rate
		return
	}
	for _, k := range e.board.Pass(row) {
		e.passed(k.ID, 1)
	}
}

func (e *Engine) passed(id board.KeyID, n int64) {
	if e.b.passed == nil {
		e.b.passed = map[board.KeyID]int64{}
	}
	e.b.passed[id] += n
}

// finishRates writes what passed in this batch, one row a rate, and what its bucket holds after it.
func (e *Engine) finishRates() {
	for id, n := range e.b.passed { // any order: sorted below
		k := e.board.KeyFor(id.Env, models.TaskKey{Name: id.Name})
		if k == nil || k.Meter == nil {
			continue // its limit was deleted afterwards
		}
		e.b.plan.RatePasses = append(e.b.plan.RatePasses, models.RatePass{Env: id.Env, Key: id.Name, At: e.now, N: n, Credit: k.Meter.Credit(e.now)})
	}
	slices.SortFunc(e.b.plan.RatePasses, func(a, b models.RatePass) int {
		return cmp.Or(cmp.Compare(a.Env, b.Env), cmp.Compare(a.Key, b.Key))
	})
}

// putRate sets a rate limit: what has started lately counts under it.
func (e *Engine) putRate(cmd *Command) (*Answer, error) {
	c := cmd.Configure
	row := *c.Rate
	if e.board.Envs[row.Env] == nil {
		return nil, models.Errorf(models.NotFound, "there is no such environment")
	}
	row.CreatedAt, row.UpdatedAt, row.Version = e.now, e.now, 1
	again := false
	if old := e.board.RateLimit(row.Env, row.Key); old != nil {
		if err := fresh(c.Version, old.Version); err != nil {
			return nil, err
		}
		row.CreatedAt, row.Version, row.FromBatch = old.CreatedAt, old.Version+1, old.FromBatch
		again = row.PerSeconds != old.PerSeconds
	} else if c.Version > 0 {
		return nil, models.Errorf(models.Stale, "there is no rate limit %q any more", row.Key)
	}
	if again {
		row.FromBatch = e.b.plan.Batch
	}
	meter, id := e.board.SetRate(row), board.KeyID{Env: row.Env, Name: row.Key, Rate: true}
	e.passed(id, 0) // what its bucket holds under the new terms is written
	if again {
		e.b.passed[id] = meter.Passed(e.now)
	}
	e.dropRatePlan(row.Env, row.Key)
	e.b.plan.Rates = append(e.b.plan.Rates, row)
	e.audit(cmd, row.Env, c.Action, row.Key, c.Reason)
	return &Answer{Rate: &row}, nil
}

// deleteRate lifts a rate limit: its key holds nothing back any more.
func (e *Engine) deleteRate(cmd *Command) (*Answer, error) {
	c := cmd.Configure
	ref := *c.DeleteRate
	old := e.board.RateLimit(ref.Env, ref.Key)
	if old == nil {
		return nil, models.Errorf(models.NotFound, "there is no rate limit %q", ref.Key)
	}
	if err := fresh(c.Version, old.Version); err != nil {
		return nil, err
	}
	e.board.DropRate(ref.Env, ref.Key)
	delete(e.b.passed, board.KeyID{Env: ref.Env, Name: ref.Key, Rate: true})
	e.dropRatePlan(ref.Env, ref.Key)
	e.b.plan.RatesGone = append(e.b.plan.RatesGone, ref)
	e.audit(cmd, ref.Env, c.Action, ref.Key, c.Reason)
	return &Answer{}, nil
}

// dropRatePlan takes back what this batch wrote of a rate limit before.
func (e *Engine) dropRatePlan(env int32, key string) {
	e.b.plan.Rates = slices.DeleteFunc(e.b.plan.Rates, func(r models.RateLimit) bool { return r.Env == env && r.Key == key })
}
