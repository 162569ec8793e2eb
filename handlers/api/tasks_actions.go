package api

import (
	"encoding/json"
	"slices"

	"github.com/gofiber/fiber/v2"

	"nightshift/handlers"
	"nightshift/handlers/body"
	"nightshift/models"
	"nightshift/models/postgres"
	"nightshift/scheduler/engine"
)

func (w *Work) cancel(d *handlers.Deps, c *fiber.Ctx) error {
	if err := handlers.NoQuery(c); err != nil {
		return err
	}
	id, err := taskID(c)
	if err != nil {
		return err
	}
	why, err := readReason(c, false)
	if err != nil {
		return err
	}
	answer, err := ask(d, c, func(cmd *engine.Command) {
		cmd.Cancel = &engine.Cancel{Env: handlers.CallerOf(c).Env, Task: id, Reason: why}
	})
	if err != nil {
		return err
	}
	if answer.Task != nil && answer.Task.State == models.CancelRequested {
		return w.show(d, c, fiber.StatusAccepted, id)
	}
	return w.show(d, c, fiber.StatusOK, id)
}

func (w *Work) discard(d *handlers.Deps, c *fiber.Ctx) error {
	if err := handlers.NoQuery(c); err != nil {
		return err
	}
	id, err := taskID(c)
	if err != nil {
		return err
	}
	why, err := readReason(c, true)
	if err != nil {
		return err
	}
	if _, err := ask(d, c, func(cmd *engine.Command) {
		cmd.Discard = &engine.Discard{Env: handlers.CallerOf(c).Env, Task: id, Reason: why}
	}); err != nil {
		return err
	}
	return w.show(d, c, fiber.StatusOK, id)
}

// retryInput is the body of a retry.
type retryInput struct {
	payload        json.RawMessage // nil: not given
	fromCheckpoint *bool
	reason         string
}

func readRetry(c *fiber.Ctx) (in retryInput, err error) {
	text, err := optionalBody(c)
	if err != nil {
		return in, err
	}
	p := &body.Problems{}
	v, err := body.Open(text, "body", p)
	if err != nil {
		return in, err
	}
	v.Members(func(name string, m body.Value) {
		switch name {
		case "payload":
			in.payload = m.Raw(handlers.PayloadLimit)
		case "from_checkpoint":
			if !m.Null() {
				from := m.Bool()
				in.fromCheckpoint = &from
			}
		case "reason":
			if !m.Null() {
				in.reason = m.String(0, maxReasonBytes)
			}
		default:
			m.Wrong("there is no such field")
		}
	})
	return in, p.Err(models.ValidationFailed)
}

// retry gives a dead letter another life, or makes a new task like one that has ended.
func (w *Work) retry(d *handlers.Deps, c *fiber.Ctx) error {
	if err := handlers.NoQuery(c); err != nil {
		return err
	}
	id, err := taskID(c)
	if err != nil {
		return err
	}
	in, err := readRetry(c)
	if err != nil {
		return err
	}
	return handlers.Create(d, c, func(once *engine.Once) (*handlers.Made, error) {
		caller := handlers.CallerOf(c)
		row, err := w.Reads.Task(c.UserContext(), caller.Scope(), caller.Env, id, postgres.Whole)
		switch {
		case err != nil:
			return nil, err
		case row.State == models.DeadLetter:
			return w.redrive(d, c, row, in)
		case !row.State.Final():
			return nil, models.Errorf(models.StateConflict, "the task is %s: only a dead letter or a task that has ended is retried", row.State)
		}
		if len(caller.Lanes) > 0 && !slices.Contains(caller.Lanes, row.LaneName) {
			return nil, models.Errorf(models.Forbidden, "this key does not submit to the lane %s", row.LaneName)
		}
		task := again(row, d.Mint())
		if in.payload != nil {
			task.Payload = in.payload
		}
		if in.fromCheckpoint != nil && *in.fromCheckpoint {
			task.Checkpoint = row.Checkpoint
		}
		return w.submitOne(d, c, task, once)
	})
}

func (w *Work) redrive(d *handlers.Deps, c *fiber.Ctx, row *postgres.TaskRow, in retryInput) (*handlers.Made, error) {
	if _, err := ask(d, c, func(cmd *engine.Command) {
		cmd.Redrive = &engine.Redrive{Env: row.Env, Task: row.ID, Reason: in.reason, Payload: in.payload, Afresh: in.fromCheckpoint != nil && !*in.fromCheckpoint}
	}); err != nil {
		return nil, err
	}
	v, err := w.view(d, c, row.ID)
	if err != nil {
		return nil, err
	}
	return &handlers.Made{Status: fiber.StatusOK, Body: v}, nil
}

// again is a new task like one that has ended: same input, no business key, nothing to wait for.
func again(row *postgres.TaskRow, id models.ID) engine.NewTask {
	in := ParseInput(row.Input)
	in.RunAt, in.DelaySeconds, in.Dedupe, in.RunIf = 0, 0, nil, ""
	task := engine.NewTask{
		ID: id, Class: row.Needs, Lane: row.LaneName, Priority: row.Priority, ExpiresInSeconds: in.ExpiresInSeconds,
		SoftSeconds: row.SoftSeconds, HardSeconds: row.HardSeconds, MaxAttempts: row.MaxAttempts, HasPolicy: row.Has(models.HasPolicy),
		FailWhenSpent: row.Has(models.FailWhenSpent), TotalSeconds: row.TotalSeconds, NeedsApproval: row.Has(models.NeedsApproval), Deadline: row.Deadline, EstimateMS: row.EstimateMS, LimitKey: row.LimitKey, KeyLimit: row.KeyLimit,
		Input: in.text(), Payload: row.Payload, Trace: row.Trace, RedriveOf: row.ID,
	}
	task.Class.Number = 0
	for key, value := range in.Labels {
		task.Labels = append(task.Labels, models.Label{Env: row.Env, Task: id, Key: key, Value: value})
	}
	return task
}
