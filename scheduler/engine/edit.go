package engine

import (
	"encoding/json"
	"slices"

	"nightshift/models"
)

// Edit changes a task that does not run; nil fields stay. The edge has read the task, and Seen is the moment it was last
// changed then: an edit of something that changed meanwhile is stale.
type Edit struct {
	Env       int32           `json:"env"`
	Task      models.ID       `json:"task"`
	Seen      models.Instant  `json:"seen"`
	Priority  *int16          `json:"priority,omitempty"`
	Lane      *string         `json:"lane,omitempty"`
	RunAt     *models.Instant `json:"run_at,omitempty"`
	ExpiresAt *models.Instant `json:"expires_at,omitempty"`
	Deadline  *models.Instant `json:"deadline,omitempty"`
	Relabel   bool            `json:"relabel,omitempty"`
	Before    []models.Label  `json:"before,omitempty"` // the labels as they were
	Labels    []models.Label  `json:"labels,omitempty"`
	Input     json.RawMessage `json:"input,omitempty"` // what is kept of the task's input from now on
	Reason    string          `json:"reason,omitempty"`
}

// edit changes what a waiting task waits for and where.
func (e *Engine) edit(cmd *Command) (*Answer, error) {
	x := cmd.Edit
	c := e.open(models.TaskRef{Env: x.Env, ID: x.Task})
	if c == nil || c.row.State == models.Staged {
		return nil, models.Errorf(models.NotFound, "there is no task %s", x.Task.Text(models.TaskPrefix))
	}
	answer := &Answer{}
	e.b.fill = append(e.b.fill, func() { row := c.row; answer.Task = &row })
	if _, done := e.b.facts.Done[cmd.ID]; done {
		return answer, nil
	}
	if err := e.editable(c, x); err != nil {
		return nil, err
	}
	if err := e.replace(c, x); err != nil {
		return nil, err
	}
	if x.Relabel {
		e.b.plan.LabelsGone = append(e.b.plan.LabelsGone, x.Before...)
		e.b.plan.Labels = append(e.b.plan.Labels, x.Labels...)
	}
	if x.Input != nil {
		e.override(models.Override{Env: x.Env, Task: x.Task, Input: x.Input})
	}
	e.b.plan.Done = append(e.b.plan.Done, cmd.ID)
	e.audit(cmd, x.Env, "task.edit", x.Task.Text(models.TaskPrefix), x.Reason)
	return answer, nil
}

func (e *Engine) editable(c *change, x *Edit) error {
	row := &c.row
	switch {
	case !row.State.Waiting():
		return models.Errorf(models.StateConflict, "the task is %s: only a task that waits can be changed", row.State)
	case row.UpdatedAt != x.Seen:
		return models.Errorf(models.Stale, "the task was changed meanwhile")
	case x.RunAt != nil && row.State == models.RetryWait:
		return models.Errorf(models.StateConflict, "the task waits to be tried again: its run_at is behind it")
	case x.ExpiresAt != nil && row.Attempt > 0:
		return models.Errorf(models.StateConflict, "the task has been started before: it no longer expires")
	}
	return nil
}

// replace takes a task out of its place, changes it, and gives it the place it has now.
func (e *Engine) replace(c *change, x *Edit) error {
	lane := c.row.Lane
	if x.Lane != nil {
		class := e.board.Classes[c.row.Class]
		to, err := e.route(x.Env, *x.Lane, class.Type, "body")
		if err != nil {
			return err
		}
		lane = to.Number
	}
	was := c.row.State
	later := x.RunAt != nil && *x.RunAt > e.now
	switch {
	case was == models.Ready && later:
		e.move(c, models.Edited, models.Scheduled)
	case was == models.Ready:
		e.stepOut(c)
	case was == models.Scheduled && x.RunAt != nil && !later:
		e.move(c, models.Edited, models.Ready)
	}
	c.row.Lane, c.row.UpdatedAt = lane, e.now
	e.rerank(c, x)
	if x.ExpiresAt != nil {
		c.row.ExpiresAt = *x.ExpiresAt
	}
	if x.RunAt != nil {
		c.row.DelaySeconds, c.row.WakeAt = 0, 0
		if later {
			c.row.WakeAt = *x.RunAt
		}
	}
	if c.row.State == models.Ready && c.row.ReadyAt == 0 {
		e.rank(c)
	}
	e.place(c)
	return nil
}

// rerank gives a task that has its rank the one of its new priority and deadline.
func (e *Engine) rerank(c *change, x *Edit) {
	if x.Priority != nil {
		if c.row.ReadyAt > 0 {
			c.row.AgeKey -= int64(*x.Priority-c.row.Priority) * models.AgePerPoint
		}
		c.row.Priority = *x.Priority
	}
	if x.Deadline != nil {
		c.row.Deadline, c.row.LatestStart = *x.Deadline, 0
		if c.row.ReadyAt > 0 {
			c.row.LatestStart = e.latestStart(&c.row)
		}
	}
}

// override notes what changed of a task's input, once a task and batch.
func (e *Engine) override(o models.Override) {
	if c := e.b.rows[o.Task]; c != nil {
		c.spec = nil // no longer what its worker gets
	}
	i := slices.IndexFunc(e.b.plan.Overrides, func(p models.Override) bool { return p.Env == o.Env && p.Task == o.Task })
	if i < 0 {
		e.b.plan.Overrides = append(e.b.plan.Overrides, o)
		return
	}
	if p := &e.b.plan.Overrides[i]; o.Input != nil {
		p.Input = o.Input
	}
	if p := &e.b.plan.Overrides[i]; o.Payload != nil {
		p.Payload = o.Payload
	}
}
