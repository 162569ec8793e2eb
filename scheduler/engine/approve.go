package engine

import (
	"nightshift/models"
)

// Approve says yes or no to a task that needs it.
type Approve struct {
	Env    int32     `json:"env"`
	Task   models.ID `json:"task"`
	Reject bool      `json:"reject,omitempty"`
	Reason string    `json:"reason,omitempty"`
}

// approvalGate is the gate of a ready task that waits for somebody's yes.
const approvalGate = "approval"

func unapproved(row *models.Task) bool {
	return row.Has(models.NeedsApproval) && !row.Has(models.Approved)
}

// approve lets a task go that somebody had to say yes to, or cancels it. Saying the same twice changes nothing.
func (e *Engine) approve(cmd *Command) (*Answer, error) {
	x := cmd.Approve
	c := e.open(models.TaskRef{Env: x.Env, ID: x.Task})
	if c == nil || c.row.State == models.Staged {
		return nil, models.Errorf(models.NotFound, "there is no task %s", x.Task.Text(models.TaskPrefix))
	}
	answer := &Answer{}
	e.b.fill = append(e.b.fill, func() { row := c.row; answer.Task = &row })
	switch {
	case !c.row.Has(models.NeedsApproval):
		return nil, models.Errorf(models.StateConflict, "the task needs nobody's approval")
	case c.row.Has(models.Approved) && !x.Reject, x.Reject && c.row.State == models.Cancelled:
		return answer, nil
	case c.row.Has(models.Approved) || !c.row.State.Waiting():
		return nil, models.Errorf(models.StateConflict, "the task is %s: it no longer waits for approval", c.row.State)
	}
	if x.Reject {
		e.stop(c, x.Reason)
		e.audit(cmd, x.Env, "task.reject", x.Task.Text(models.TaskPrefix), x.Reason)
		return answer, nil
	}
	c.row.Flags |= models.Approved
	c.row.UpdatedAt = e.now
	if c.row.Gate == approvalGate {
		e.stepOut(c)
		e.place(c)
		e.event(c, "task.ready")
	} else {
		e.sync(c)
	}
	e.audit(cmd, x.Env, "task.approve", x.Task.Text(models.TaskPrefix), x.Reason)
	return answer, nil
}
