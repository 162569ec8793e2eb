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
	dry, err := handlers.DryRun(c)
	if err != nil {
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
	if dry {
		return w.dryRetry(d, c, id, in)
	}
	return handlers.Create(d, c, func(once *engine.Once) (*handlers.Made, error) {
		row, err := w.retried(d, c, id, in)
		if err != nil {
			return nil, err
		}
		if err := mayRetry(c, row); err != nil {
			return nil, err
		}
		if row.State == models.DeadLetter {
			return w.redrive(d, c, row, in)
		}
		task, err := w.anew(d, c, row, in)
		if err != nil {
			return nil, err
		}
		made, err := w.submitOne(d, c, task, once)
		if err == nil && made.Status == fiber.StatusAccepted {
			made.Status = fiber.StatusCreated // the mark of its lane's high water is for submits
		}
		return made, err
	})
}

// dryRetry says what would become of a retry: of the new task, or of the dead letter as soon as it is ready.
func (w *Work) dryRetry(d *handlers.Deps, c *fiber.Ctx, id models.ID, in retryInput) error {
	row, err := w.retried(d, c, id, in)
	if err != nil {
		return err
	}
	if row.State == models.DeadLetter && in.payload != nil && row.Has(models.Itemized) {
		if kept := ParseInput(row.Input); !drains(&kept) {
			return itemsStay()
		}
	}
	refused, err := refusalsOf(mayRetry(c, row))
	if err != nil {
		return err
	}
	task, err := w.anew(d, c, row, in)
	if err != nil {
		return err
	}
	v, err := w.dryAsk(d, c, task)
	if err != nil {
		return err
	}
	if row.State == models.DeadLetter || len(refused) > 0 { // it is here already: nothing of a submit is in its way
		v.Refusals = nil
	}
	v.Refusals = append(refused, v.Refusals...)
	return handlers.Answer(c, fiber.StatusOK, v)
}

func itemsStay() error {
	return models.Invalid("body.payload", "the task is a slice of a batch: its items stay as they are")
}

// retried reads the task that is to be retried, with a payload that it could have.
func (w *Work) retried(d *handlers.Deps, c *fiber.Ctx, id models.ID, in retryInput) (*postgres.TaskRow, error) {
	caller := handlers.CallerOf(c)
	row, err := w.Reads.Task(c.UserContext(), caller.Scope(), caller.Env, id, postgres.Whole)
	if err == nil && in.payload != nil {
		err = checkAgain(d, c, row, in.payload)
	}
	return row, err
}

// mayRetry refuses a task that lives, and a new one that the caller could not submit.
func mayRetry(c *fiber.Ctx, row *postgres.TaskRow) error {
	caller := handlers.CallerOf(c)
	switch {
	case row.State == models.DeadLetter:
		return nil
	case !row.State.Final():
		return models.Errorf(models.StateConflict, "the task is %s: only a dead letter or a task that has ended is retried", row.State)
	}
	if err := mayEnter(caller, row.LaneName); err != nil {
		return err
	}
	return mayHandOut(caller.Permissions, row.Needs.Permissions)
}

// mayEnter refuses a lane that the caller's key does not submit to.
func mayEnter(caller *handlers.Caller, lane string) error {
	if len(caller.Lanes) > 0 && !slices.Contains(caller.Lanes, lane) {
		return models.Errorf(models.Forbidden, "this key does not submit to the lane %s", lane)
	}
	return nil
}

// anew is a new task like one that has ended, with what the retry says otherwise.
func (w *Work) anew(d *handlers.Deps, c *fiber.Ctx, row *postgres.TaskRow, in retryInput) (engine.NewTask, error) {
	made := []engine.NewTask{again(row, d.Mint())}
	if err := w.refed(c, []postgres.TaskRow{*row}, made); err != nil {
		return made[0], err
	}
	task := made[0]
	if budget := ParseInput(row.Input).Budget; budget != nil {
		task.Own = ownFlow(d.Mint(), &task, budget)
	}
	if in.payload != nil {
		task.Payload = in.payload
		if in := ParseInput(row.Input); task.Items != nil && !drains(&in) {
			task.Items = itemsOf(task.Payload)
		}
	}
	if in.fromCheckpoint != nil && *in.fromCheckpoint {
		task.Checkpoint = row.Checkpoint
	}
	return task, nil
}

func (w *Work) redrive(d *handlers.Deps, c *fiber.Ctx, row *postgres.TaskRow, in retryInput) (*handlers.Made, error) {
	kept := ParseInput(row.Input)
	if _, err := ask(d, c, func(cmd *engine.Command) {
		cmd.Redrive = &engine.Redrive{Env: row.Env, Task: row.ID, Reason: in.reason, Payload: in.payload, Afresh: in.fromCheckpoint != nil && !*in.fromCheckpoint, Apart: drains(&kept)}
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
		MoreKeys: row.MoreKeys, Ordered: row.Has(models.Ordered),
		Input: in.text(), Payload: row.Payload, Trace: row.Trace, RedriveOf: row.ID, Schedule: scheduleOf(&in),
		Tokens: row.Tokens, CostMicro: row.CostMicro, Schema: engine.Unchecked, // its payload was taken before
	}
	task.Class.Number = 0
	if choice := row.Choice; choice != nil { // its model is chosen anew, or asked for by the name that was given
		task.Class.Model, task.Class.Hosted, task.Class.Chosen = choice.Named, false, false
		if choice.Named == "" {
			task.Model = choice.Asked
		}
	}
	if row.Has(models.Itemized) && !drains(&in) {
		task.Items = itemsOf(row.Payload)
	}
	for key, value := range in.Labels {
		task.Labels = append(task.Labels, models.Label{Env: row.Env, Task: id, Key: key, Value: value})
	}
	return task
}

// drains says that a task's items are those that its run took of a queue.
func drains(in *Input) bool { return in.Fed == "drain" }

// refed gives tasks that are made anew the items that the first ones had of a queue.
func (w *Work) refed(c *fiber.Ctx, rows []postgres.TaskRow, tasks []engine.NewTask) error {
	var refs []models.TaskRef
	for i := range rows {
		if in := ParseInput(rows[i].Input); rows[i].Has(models.Itemized) && drains(&in) {
			refs = append(refs, models.TaskRef{Env: rows[i].Env, ID: rows[i].ID})
		}
	}
	if len(refs) == 0 {
		return nil
	}
	items, err := w.Reads.ItemsOf(c.UserContext(), refs)
	for i := range rows {
		if s, fed := items[models.TaskRef{Env: rows[i].Env, ID: rows[i].ID}]; fed {
			tasks[i].Items = &models.Items{First: s.First, Total: s.Total}
		}
	}
	return err
}

// scheduleOf is the schedule that made a task, zero when none did.
func scheduleOf(in *Input) models.ID {
	id, err := models.ParseID(models.SchedulePrefix, in.ScheduleID)
	if err != nil {
		return models.ID{}
	}
	return id
}
