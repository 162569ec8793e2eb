package engine

import (
	"fmt"
	"slices"

	"nightshift/models"
)

// shut gives a workflow one more reason why nothing of it starts, or takes one away. The row is written in this batch; its
// tasks are parked as they come to the head of their lines, and come back in slices when the last reason is gone.
func (e *Engine) shut(env int32, workflow models.ID, reason models.FlowGate, on bool) {
	gate := e.board.Shut(workflow)
	next := gate &^ reason
	if on {
		next = gate | reason
	}
	if next == gate {
		return
	}
	e.board.SetShut(workflow, next)
	row := models.FlowShut{Env: env, Workflow: workflow, Gate: next}
	if i := slices.IndexFunc(e.b.plan.Shuts, func(s models.FlowShut) bool { return s.Workflow == workflow }); i >= 0 {
		e.b.plan.Shuts[i] = row
	} else {
		e.b.plan.Shuts = append(e.b.plan.Shuts, row)
	}
	if f := e.flows[workflow]; f != nil {
		f.row.Gate = next
		e.touchFlow(f)
	} else {
		e.want[models.TaskRef{Env: env, ID: workflow}] = true
	}
	if next == 0 && e.board.Behind(workflow) > 0 {
		e.addCursor(models.Cursor{ID: e.newID(), Env: env, Kind: models.OpenWorkflow, Target: workflow, Matched: e.board.Behind(workflow), At: e.now, Actor: models.Actor{Kind: "brain"}})
	}
	e.dirty = true
}

// reopen lets a task parked for its workflow stand in its line again, or behind its key.
func (e *Engine) reopen(c *change) bool {
	if _, parked := models.FlowOfGate(c.row.Gate); !parked || c.row.State != models.Ready || e.board.Shut(c.row.Workflow) != 0 {
		return false
	}
	e.unpark(c)
	e.stand(c)
	e.sync(c)
	return true
}

// checkParked says that no task is parked behind an open gate of a workflow unless a cursor is on its way to it.
func (e *Engine) checkParked(parked []models.ParkedCount) error {
	for _, p := range parked {
		id, ok := models.FlowOfGate(p.Gate)
		opens := func(c models.Cursor) bool { return c.Kind == models.OpenWorkflow && c.Target == id }
		if ok && e.board.Shut(id) == 0 && !slices.ContainsFunc(e.cursors, opens) {
			return fmt.Errorf("%d tasks are parked behind the open gate %s", p.Count, p.Gate)
		}
	}
	return nil
}

// flowShutFor says to explain why nothing of a workflow starts.
func flowShutFor(gate models.FlowGate, block func(reason, format string, args ...any)) {
	if gate&models.FlowPaused != 0 {
		block("workflow_stopped", "the workflow is paused")
	}
	if gate&models.FlowStopped != 0 {
		block("workflow_stopped", "a task of the workflow failed, and it stops on failure: it waits for a redrive, a rerun or a cancel")
	}
	if gate&models.FlowSpent != 0 {
		block("workflow_budget", "what is left of the workflow's budget of cost or tokens covers no further task")
	}
}
