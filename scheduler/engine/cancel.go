package engine

import (
	"encoding/json"
	"slices"

	"nightshift/models"
	"nightshift/scheduler/board"
)

// cancelGrace is how long a worker may ignore a cancel before its lease ends.
const cancelGrace = 30 * 1_000_000

// cancel stops a task, or a workflow: one row first, its tasks follow in slices.
func (e *Engine) cancel(cmd *Command) (*Answer, error) {
	x := cmd.Cancel
	if !x.Workflow.IsZero() {
		return e.cancelWorkflow(cmd)
	}
	c := e.open(models.TaskRef{Env: x.Env, ID: x.Task})
	if c == nil || c.row.State == models.Staged {
		return nil, models.Errorf(models.NotFound, "there is no task %s", x.Task.Text(models.TaskPrefix))
	}
	answer := &Answer{}
	if e.stop(c, x.Reason) {
		e.audit(cmd, x.Env, "task.cancel", x.Task.Text(models.TaskPrefix), x.Reason)
	}
	e.b.fill = append(e.b.fill, func() { row := c.row; answer.Task = &row })
	return answer, nil
}

// stop cancels what waits and asks what runs to stop. It answers whether that changed anything.
func (e *Engine) stop(c *change, reason string) bool {
	switch {
	case c.row.State.Final() || c.row.State == models.CancelRequested:
		return false
	case c.row.Has(models.HasChildren):
		e.stopChildren(&c.row, reason)
	}
	switch {
	case c.row.State == models.Running:
		e.move(c, models.AskedToStop, models.CancelRequested)
		c.row.CancelAt = e.now
		e.told[c.row.Worker] = true
		e.sync(c)
		e.event(c, "task.cancel_requested").Reason = reason
	default:
		e.conclude(c, models.AskedToStop, models.Cancelled, "task.cancelled").Reason = reason
	}
	return true
}

func (e *Engine) cancelWorkflow(cmd *Command) (*Answer, error) {
	x := cmd.Cancel
	f := e.flows[x.Workflow]
	if f == nil || f.row.Env != x.Env {
		return nil, models.Errorf(models.NotFound, "there is no workflow %s", x.Workflow.Text(models.WorkflowPrefix))
	}
	answer := &Answer{}
	e.b.fill = append(e.b.fill, func() { row := f.row; answer.Workflow = &row })
	if f.ended() && f.row.Counts[models.DeadLetter] == 0 || f.row.Cancelling {
		return answer, nil
	}
	e.stopFlow(f, x.Reason, cmd.Actor)
	e.audit(cmd, x.Env, "workflow.cancel", x.Workflow.Text(models.WorkflowPrefix), x.Reason)
	return answer, nil
}

// redrive gives a dead letter another life: the same task, with its attempts unused again.
func (e *Engine) redrive(cmd *Command) (*Answer, error) {
	x := cmd.Redrive
	c := e.open(models.TaskRef{Env: x.Env, ID: x.Task})
	if c == nil || c.row.State == models.Staged {
		return nil, models.Errorf(models.NotFound, "there is no task %s", x.Task.Text(models.TaskPrefix))
	}
	answer := &Answer{}
	e.b.fill = append(e.b.fill, func() { row := c.row; answer.Task = &row })
	if _, done := e.b.facts.Done[cmd.ID]; done {
		return answer, nil
	}
	if c.row.State != models.DeadLetter {
		return nil, models.Errorf(models.StateConflict, "the task is %s: only a dead letter can be given another life", c.row.State)
	}
	if x.Payload != nil && c.row.Has(models.Itemized) && !x.Apart {
		return nil, models.Invalid("body.payload", "the task is a slice of a batch: its items stay as they are")
	}
	if x.Payload != nil {
		e.override(models.Override{Env: x.Env, Task: x.Task, Payload: x.Payload})
	}
	if x.Afresh {
		e.keep(models.Progress{Env: x.Env, Task: x.Task, Checkpoint: json.RawMessage("null")})
	}
	e.revive(c, x.Reason)
	e.b.plan.Done = append(e.b.plan.Done, cmd.ID)
	e.audit(cmd, x.Env, "task.redrive", x.Task.Text(models.TaskPrefix), x.Reason)
	return answer, nil
}

func (e *Engine) revive(c *change, reason string) {
	c.row.Flags &^= models.RetriesSpent
	c.row.AttemptsUsed, c.row.LeasesLost, c.row.Fingerprint, c.row.ExpiresAt, c.row.TotalUntil = 0, 0, models.ID{}, 0, 0
	if !c.row.Workflow.IsZero() {
		e.shut(c.row.Env, c.row.Workflow, models.FlowStopped, false)
	}
	e.becomeReady(c, models.Redriven)
	e.runMoved(c)
	e.event(c, "task.redriven").Reason = reason
}

// discard gives a dead letter up for good.
func (e *Engine) discard(cmd *Command) (*Answer, error) {
	x := cmd.Discard
	c := e.open(models.TaskRef{Env: x.Env, ID: x.Task})
	if c == nil || c.row.State == models.Staged {
		return nil, models.Errorf(models.NotFound, "there is no task %s", x.Task.Text(models.TaskPrefix))
	}
	answer := &Answer{}
	e.b.fill = append(e.b.fill, func() { row := c.row; answer.Task = &row })
	if _, done := e.b.facts.Done[cmd.ID]; done {
		return answer, nil
	}
	if c.row.State != models.DeadLetter {
		return nil, models.Errorf(models.StateConflict, "the task is %s: only a dead letter can be discarded", c.row.State)
	}
	e.conclude(c, models.Discarded, models.Failed, "task.failed").Reason = x.Reason
	e.b.plan.Done = append(e.b.plan.Done, cmd.ID)
	e.audit(cmd, x.Env, "task.discard", x.Task.Text(models.TaskPrefix), x.Reason)
	return answer, nil
}

// bulk starts work on all dead letters of a fingerprint.
func (e *Engine) bulk(cmd *Command) (*Answer, error) {
	x := cmd.Bulk
	if answer, err := e.replay(x.Once); answer != nil || err != nil {
		return answer, err
	}
	cursor := models.Cursor{ID: x.ID, Env: x.Env, Kind: x.Kind, Target: x.Fingerprint, Until: x.Until, Matched: x.Matched, Reason: x.Reason, Actor: cmd.Actor, At: e.now}
	cursor.Action, cursor.Priority, cursor.Lane, cursor.Patch, cursor.Rate = x.Action, x.Priority, x.Lane, x.Patch, x.Rate
	name, err := e.bulkName(x)
	if err != nil {
		return nil, err
	}
	answer := &Answer{Cursor: &cursor}
	if _, done := e.b.facts.Done[cmd.ID]; done {
		return answer, nil
	}
	e.addCursor(cursor)
	e.b.plan.Done = append(e.b.plan.Done, cmd.ID)
	e.recordOnce(x.Once, []models.ID{x.ID})
	e.audit(cmd, x.Env, name, x.ID.Text(models.BulkPrefix), x.Reason)
	return answer, nil
}

func (e *Engine) addCursor(c models.Cursor) {
	e.cursors = append(e.cursors, c)
	e.saveCursor(c)
}

// decideSlices moves the cursor whose rows were read one slice on, and sends it to the back of those that wait.
func (e *Engine) decideSlices() {
	at := slices.IndexFunc(e.cursors, func(c models.Cursor) bool { _, read := e.b.facts.Slices[c.ID]; return read })
	if at < 0 {
		return
	}
	cursor := e.cursors[at]
	rows := e.b.facts.Slices[cursor.ID]
	if cursor.Kind == models.EnterStaged && len(rows) > 0 {
		if w := rows[0].Workflow; !w.IsZero() && e.flows[w] == nil && !e.b.gone[w] {
			e.wantFlow(&rows[0]) // whether it was cancelled must be known first
			return
		}
	}
	size := e.sliceSize(&cursor)
	e.cursors = slices.Delete(slices.Clone(e.cursors), at, at+1)
	e.sliceRows(&cursor, rows)
	cursor.Finished = len(rows) < size
	if f := e.flows[cursor.Target]; f != nil && cursor.Kind == models.RedriveWorkflow {
		e.touchFlow(f) // it may end now
	}
	e.pace(&cursor, len(rows))
	if !cursor.Finished {
		e.cursors = append(e.cursors, cursor)
	}
	e.saveCursor(cursor)
}

// sliceRows does to rows what their cursor is for.
func (e *Engine) sliceRows(cursor *models.Cursor, rows []models.Task) {
	for i := range rows {
		cursor.After = rows[i].ID
		c := e.open(models.TaskRef{Env: rows[i].Env, ID: rows[i].ID})
		if c == nil {
			c = e.enlist(&rows[i])
		}
		if e.slice(cursor, c) {
			cursor.Done++
		} else {
			cursor.Failed++
		}
	}
}

func (e *Engine) slice(cursor *models.Cursor, c *change) bool {
	switch cursor.Kind {
	case models.EnterStaged:
		return e.enterStaged(c)
	case models.CancelWorkflow, models.CancelChildren:
		return e.stop(c, cursor.Reason)
	case models.OpenWorkflow:
		return e.reopen(c)
	case models.RankWorkflow:
		return e.reprioritise(c)
	case models.RedriveDead, models.RedriveWorkflow:
		if c.row.State != models.DeadLetter {
			return false
		}
		e.revive(c, cursor.Reason)
	case models.BulkAction:
		return e.act(cursor, c)
	case models.DiscardDead:
		if c.row.State != models.DeadLetter {
			return false
		}
		e.conclude(c, models.Discarded, models.Failed, "task.failed").Reason = cursor.Reason
	}
	return true
}

// laneOf is the lane a row stands in; a task whose lane was deleted goes to its environment's lane batch.
func (e *Engine) laneOf(row *models.Task) *board.Lane {
	if l := e.board.Lanes[row.Lane]; l != nil {
		return l
	}
	return e.board.LaneNamed(row.Env, "batch")
}
