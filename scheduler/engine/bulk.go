package engine

import (
	"encoding/json"
	"slices"

	"nightshift/models"
)

// patchedAtOnce is how many payloads a slice reads and changes: they may be large.
const patchedAtOnce = 20

// mostUnfired is how many ends with edges left to move there may be before cursors, whose rows end too, wait for them.
const mostUnfired = 100

// dueCursor is the first cursor that may move now; -1: none.
func (e *Engine) dueCursor() int {
	if len(e.unfired) > mostUnfired {
		return -1
	}
	return slices.IndexFunc(e.cursors, func(c models.Cursor) bool { return !c.Paused && c.NextAt <= e.now })
}

// sliceSize is how many rows a cursor moves at once.
func (e *Engine) sliceSize(c *models.Cursor) int {
	size := e.portion()
	if c.Patch != nil {
		size = min(size, patchedAtOnce)
	}
	if c.Wide > 0 {
		size = min(size, max(1, linkedAtOnce/int(c.Wide)))
	}
	if c.Rate > 0 {
		size = min(size, max(1, int(c.Rate)))
	}
	return size
}

// pace puts a cursor's next slice off so that it keeps its rate.
func (e *Engine) pace(c *models.Cursor, moved int) {
	c.NextAt = 0
	if c.Rate > 0 {
		c.NextAt = e.now + models.Instant(float64(moved)/c.Rate*1e6)
	}
}

// saveCursor writes a cursor as it stands at the end of the batch, once.
func (e *Engine) saveCursor(c models.Cursor) {
	if i := slices.IndexFunc(e.b.plan.Cursors, func(o models.Cursor) bool { return o.ID == c.ID }); i >= 0 {
		e.b.plan.Cursors[i] = c
		return
	}
	e.b.plan.Cursors = append(e.b.plan.Cursors, c)
}

// bulkName checks what is asked and names it for the audit.
func (e *Engine) bulkName(x *Bulk) (string, error) {
	switch x.Kind {
	case models.RedriveDead:
		return "dead_letters.redrive", nil
	case models.DiscardDead:
		return "dead_letters.discard", nil
	case models.BulkAction:
		if x.Action == models.ActMove {
			if _, err := e.route(x.Env, x.Lane, "", "body"); err != nil {
				return "", err
			}
		}
		return "bulk." + x.Action.String(), nil
	}
	return "", models.Errorf(models.InvalidRequest, "there is no such bulk action")
}

// act does a bulk action to one task; false when the task is not in a state for it.
func (e *Engine) act(cursor *models.Cursor, c *change) bool {
	switch cursor.Action {
	case models.ActCancel:
		return e.stop(c, cursor.Reason)
	case models.ActRetry:
		return c.row.State == models.DeadLetter && e.retryListed(cursor, c)
	case models.ActDiscard:
		if c.row.State != models.DeadLetter {
			return false
		}
		e.conclude(c, models.Discarded, models.Failed, "task.failed").Reason = cursor.Reason
		return true
	case models.ActReprioritise:
		return c.row.State.Waiting() && c.row.State != models.Staged && e.replace(c, &Edit{Env: c.row.Env, Priority: &cursor.Priority}) == nil
	case models.ActMove:
		return c.row.State.Waiting() && c.row.State != models.Staged && e.replace(c, &Edit{Env: c.row.Env, Lane: &cursor.Lane}) == nil
	}
	return false
}

// retryListed gives a dead letter another life, with its payload patched where that was asked.
func (e *Engine) retryListed(cursor *models.Cursor, c *change) bool {
	if cursor.Patch != nil && c.row.Has(models.Itemized) && touchesItems(cursor.Patch) {
		return false // a slice keeps its items
	}
	if cursor.Patch != nil {
		payload, err := models.MergePatch(e.b.facts.Payloads[models.TaskRef{Env: c.row.Env, ID: c.row.ID}], cursor.Patch)
		if err != nil || len(payload) > models.PayloadMost {
			return false
		}
		e.override(models.Override{Env: c.row.Env, Task: c.row.ID, Payload: payload})
	}
	e.revive(c, cursor.Reason)
	return true
}

// steerBulk pauses, resumes or ends a bulk action that is not done.
func (e *Engine) steerBulk(cmd *Command) (*Answer, error) {
	x := cmd.SteerBulk
	i := slices.IndexFunc(e.cursors, func(c models.Cursor) bool { return c.ID == x.ID && c.Env == x.Env })
	if i < 0 {
		return nil, models.Errorf(models.StateConflict, "the bulk action has ended")
	}
	c := &e.cursors[i]
	switch x.Verb {
	case "pause":
		c.Paused = true
	case "resume":
		c.Paused, c.NextAt = false, 0
	case "cancel":
		c.Finished, c.Dropped = true, true
	default:
		return nil, models.Errorf(models.InvalidRequest, "a bulk action is paused, resumed or cancelled")
	}
	row := *c
	e.saveCursor(row)
	if row.Finished {
		e.cursors = slices.Delete(slices.Clone(e.cursors), i, i+1)
	}
	e.audit(cmd, x.Env, "bulk."+x.Verb, x.ID.Text(models.BulkPrefix), "")
	return &Answer{Cursor: &row}, nil
}

// keep notes what an attempt said, once a task and batch.
func (e *Engine) keep(p models.Progress) {
	i := slices.IndexFunc(e.b.plan.Progress, func(o models.Progress) bool { return o.Env == p.Env && o.Task == p.Task })
	if i < 0 {
		e.b.plan.Progress = append(e.b.plan.Progress, p)
		return
	}
	old := &e.b.plan.Progress[i]
	old.Progress, old.Checkpoint = orElse(p.Progress, old.Progress), orElse(p.Checkpoint, old.Checkpoint)
}

func orElse(a, b json.RawMessage) json.RawMessage {
	if a != nil {
		return a
	}
	return b
}
