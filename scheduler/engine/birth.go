package engine

import (
	"nightshift/models"
)

// makeTask writes the new row, its spec and labels. Its dependencies follow in link, its place in enterNew.
func (e *Engine) makeTask(s *Submit, p placement, flow *flow) *change {
	t := p.task
	if p.class == 0 {
		p.class = e.internClass(t.Class)
	}
	row := models.Task{
		Env: s.Env, ID: t.ID, State: models.Pending, Lane: p.lane.Number, Class: p.class,
		Priority: t.Priority, CreatedAt: e.now, UpdatedAt: e.now, MaxAttempts: t.MaxAttempts, Key: t.Key, IdemKey: t.IdemKey,
		LimitKey: t.LimitKey, KeyLimit: t.KeyLimit, MoreKeys: t.MoreKeys, SoftSeconds: t.SoftSeconds, HardSeconds: t.HardSeconds, EstimateMS: t.EstimateMS,
		WakeAt: t.RunAt, Deadline: t.Deadline, Tokens: t.Tokens, CostMicro: t.CostMicro, AgeKey: -e.importance(flow, t.AheadMS),
	}
	if row.HardSeconds == 0 {
		row.HardSeconds = p.lane.Kind.DefaultHardSeconds()
	}
	if t.HasPolicy {
		row.Flags |= models.HasPolicy
	}
	if t.FailWhenSpent {
		row.Flags |= models.FailWhenSpent
	}
	row.TotalSeconds = t.TotalSeconds
	if t.Ordered {
		row.Flags |= models.Ordered
	}
	if t.NeedsApproval {
		row.Flags |= models.NeedsApproval
	}
	if t.HasCondition {
		row.Flags |= models.HasCondition
	}
	if p.choice != nil {
		e.keepChoice(&row, p.choice)
	}
	if flow != nil {
		row.Workflow = flow.row.ID
		row.Flags |= flow.flags()
	}
	if t.Items != nil {
		row.Flags |= models.Itemized
		e.b.plan.Items = append(e.b.plan.Items, models.Items{Env: s.Env, Task: t.ID, Workflow: row.Workflow, First: t.Items.First, Total: t.Items.Total})
	}
	c := e.born(row)
	if t.IdemKey != "" {
		e.b.idem[models.IdemRef{Env: s.Env, Key: t.IdemKey}] = c
	}
	e.takeDedupe(s.Env, t)
	if !t.Schedule.IsZero() {
		e.b.plan.Schedules.Tasks = append(e.b.plan.Schedules.Tasks, models.ScheduleTask{Env: s.Env, Schedule: t.Schedule, Task: t.ID})
	}
	if len(t.Checkpoint) > 0 {
		e.keep(models.Progress{Env: s.Env, Task: t.ID, Checkpoint: t.Checkpoint})
	}
	e.b.plan.Specs = append(e.b.plan.Specs, models.Spec{Env: s.Env, ID: t.ID, Input: t.Input, Payload: t.Payload, Trace: t.Trace, Parent: t.RedriveOf})
	if len(t.DependsOn) == 0 && len(t.Checkpoint) == 0 {
		c.spec = &e.b.plan.Specs[len(e.b.plan.Specs)-1]
	}
	for _, l := range t.Labels {
		l.Env, l.Task = s.Env, t.ID
		e.b.plan.Labels = append(e.b.plan.Labels, l)
	}
	p.lane.In.Add(e.now)
	e.note(tallySubmitted, &c.row)
	return c
}

// link writes the task's edges and counts them in its row. One that has already fired or was killed is never open. Who
// depends on a task of the body that was there before depends on the one that holds its key.
func (e *Engine) link(env int32, c *change, p placement, inside map[models.ID]*change, holders map[models.ID]*models.Task) {
	for j, d := range p.task.DependsOn {
		edge := models.Edge{Env: env, From: d.Task, To: c.row.ID, On: d.On}
		row := p.deps[j]
		if holder := holders[d.Task]; holder != nil {
			row, edge.From = holder, holder.ID
		}
		if source := inside[d.Task]; source != nil {
			source.row.Flags |= models.HasDependants
		} else if edge.State = d.On.After(row.EndState()); edge.State == models.EdgeOpen {
			e.hasDependant(row)
		}
		switch edge.State {
		case models.EdgeOpen:
			c.row.Remaining++
		case models.EdgeKilled:
			c.row.Killed++
		}
		e.b.plan.Edges = append(e.b.plan.Edges, edge)
	}
}

// hasDependant notes on an existing task that its end concerns others.
func (e *Engine) hasDependant(row *models.Task) {
	if c := e.enlist(row); !c.row.Has(models.HasDependants) {
		c.row.Flags |= models.HasDependants
		if held := e.board.Held(c.row.ID); held != nil {
			held.Row.Flags = c.row.Flags
		}
		if c.row.State == models.DeadLetter || c.row.State.Final() {
			e.endEdges(c) // it ended earlier in this very batch
		}
	}
}

// enterNew gives a new task its first state: waiting for others, for its moment, or ready.
func (e *Engine) enterNew(c *change, t *NewTask) {
	created := len(e.b.plan.Events)
	e.event(c, "task.created")
	e.settleBirth(c, t.DelaySeconds, models.Seconds(int(t.ExpiresInSeconds)).Microseconds())
	e.b.plan.Events[created].State = c.row.State.String()
	e.bornCount(c)
	if c.row.Killed > 0 {
		e.conclude(c, models.DependencyDied, models.Skipped, "task.skipped")
	}
}

// settleBirth decides where a task that just entered the world stands. The row is Pending without a place.
func (e *Engine) settleBirth(c *change, delaySeconds int32, expires int64) {
	if delaySeconds > 0 && c.row.Remaining == 0 {
		c.row.WakeAt = e.now.Add(models.Seconds(int(delaySeconds)))
	} else {
		c.row.DelaySeconds = delaySeconds
	}
	if expires > 0 {
		c.row.ExpiresAt = max(c.row.WakeAt, e.now) + models.Instant(expires)
	}
	switch {
	case c.row.Remaining > 0 || c.row.Killed > 0 || c.row.Has(models.HasCondition): // conditions are judged by facts
		c.row.State = models.Pending
	case c.row.WakeAt > e.now:
		c.row.State = models.Scheduled
	default:
		c.row.State, c.row.WakeAt = models.Ready, 0
		e.rank(c)
	}
	if c.row.State.Unready() {
		e.awaits(&c.row, 1)
		e.board.AddQueued(c.row.Env, 1)
	}
	e.place(c)
}
