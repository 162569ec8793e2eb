package engine

import (
	"slices"

	"nightshift/models"
)

// flow is a workflow the brain has in hand: its counts follow every move of its tasks.
type flow struct {
	row    models.Workflow
	fresh  bool // made by this batch
	dirty  bool // the saved counts are behind
	inHand bool // touched in this batch
	ends   bool // a task of it ended in this batch: what that frees is not known yet
}

func (f *flow) moving() int32 {
	c := &f.row.Counts
	return c[models.Staged] + c[models.Scheduled] + c[models.Ready] + c[models.Running] + c[models.RetryWait] + c[models.CancelRequested]
}

// loadFlows takes in the workflows that were asked for; their counts are those before this batch.
func (e *Engine) loadFlows() {
	for _, f := range e.again {
		e.touchFlow(f)
	}
	e.again = nil
	refs := make([]models.TaskRef, 0, len(e.want))
	for ref := range e.b.facts.Workflows { // any order: sorted below
		refs = append(refs, ref)
	}
	slices.SortFunc(refs, func(a, b models.TaskRef) int { return a.ID.Compare(b.ID) })
	for _, ref := range refs {
		delete(e.want, ref)
		if e.flows[ref.ID] == nil {
			f := &flow{row: e.b.facts.Workflows[ref]}
			e.flows[ref.ID] = f
			e.touchFlow(f)
		}
	}
	for ref := range e.want { // any order: they do not exist
		if _, ok := e.b.facts.Workflows[ref]; !ok && e.b.plan.Batch > 0 {
			delete(e.want, ref)
		}
	}
}

func (e *Engine) wantFlow(row *models.Task) {
	if !row.Workflow.IsZero() && e.flows[row.Workflow] == nil {
		e.want[models.TaskRef{Env: row.Env, ID: row.Workflow}] = true
	}
}

func (e *Engine) touchFlow(f *flow) {
	if !f.inHand {
		f.inHand = true
		e.b.flows = append(e.b.flows, f)
	}
}

// bornFlow makes the workflow of a submit.
func (e *Engine) bornFlow(env int32, w *NewWorkflow, answer *Submitted) *flow {
	if w == nil {
		return nil
	}
	f := &flow{fresh: true, row: models.Workflow{Env: env, ID: w.ID, Name: w.Name, Priority: w.Priority, Input: w.Input, CreatedAt: e.now, UpdatedAt: e.now}}
	e.flows[w.ID] = f
	e.touchFlow(f)
	e.b.plan.Events = append(e.b.plan.Events, models.Event{Env: env, Name: "workflow.started", At: e.now, Workflow: w.ID, State: models.WorkflowRunning.String()})
	e.b.fill = append(e.b.fill, func() { row := f.row; answer.Workflow = &row })
	return f
}

// bornCount counts a task that was just made.
func (e *Engine) bornCount(c *change) {
	if f := e.flows[c.row.Workflow]; f != nil && !c.row.Workflow.IsZero() {
		f.row.Counts[c.row.State]++
		e.touchFlow(f)
	}
}

// countFlow follows a move. A workflow that is not in hand is read before the next batch, counts and all.
func (e *Engine) countFlow(c *change, from, to models.State) {
	if c.row.Workflow.IsZero() || from == to {
		return
	}
	f := e.flows[c.row.Workflow]
	if f == nil {
		e.wantFlow(&c.row)
		return
	}
	f.row.Counts[from]--
	f.row.Counts[to]++
	f.dirty = true
	f.ends = f.ends || c.row.Has(models.HasDependants) && (to.Final() || to == models.DeadLetter)
	e.touchFlow(f)
}

// judgeFlows ends the workflows in which nothing can move any more, and wakes those that move again.
func (e *Engine) judgeFlows() {
	waiting := map[models.ID]bool{}
	for _, row := range e.freed.rows { // any order: a set
		waiting[row.Workflow] = true
	}
	for _, f := range e.b.flows {
		id := f.row.ID
		c := &f.row.Counts
		switch {
		case f.moving() > 0:
			e.setFlow(f, models.WorkflowRunning)
		case c[models.Pending] > 0 && (f.ends || waiting[id] || c[models.DeadLetter] == 0):
			// What this batch frees is known only after it: look again then.
			if f.ends {
				e.again = append(e.again, f)
			}
		case c[models.Failed]+c[models.DeadLetter] > 0:
			e.setFlow(f, models.WorkflowFailed)
		case f.row.Cancelling:
			e.setFlow(f, models.WorkflowCancelled)
		default:
			e.setFlow(f, models.WorkflowSucceeded)
		}
	}
}

func (e *Engine) setFlow(f *flow, state models.WorkflowState) {
	if f.row.State == state || f.row.State == models.WorkflowPaused {
		return
	}
	f.row.State, f.row.UpdatedAt, f.dirty = state, e.now, true
	f.row.FinishedAt = 0
	name := "workflow.started"
	if state.Final() {
		f.row.FinishedAt = e.now
		name = "workflow." + state.String()
	}
	e.b.plan.Events = append(e.b.plan.Events, models.Event{Env: f.row.Env, Name: name, At: e.now, Workflow: f.row.ID, State: state.String()})
	if !f.fresh {
		e.saveFlow(f)
	}
}

func (e *Engine) saveFlow(f *flow) {
	f.dirty = false
	for i := range e.b.plan.WorkflowChanges {
		if e.b.plan.WorkflowChanges[i].ID == f.row.ID {
			e.b.plan.WorkflowChanges[i] = f.row
			return
		}
	}
	e.b.plan.WorkflowChanges = append(e.b.plan.WorkflowChanges, f.row)
}

// saveFlows writes the counts that are behind, at most once a second, and lets go of what has ended.
func (e *Engine) saveFlows() {
	ids := make([]models.ID, 0, len(e.flows))
	for id, f := range e.flows { // any order: sorted below
		if f.dirty || f.row.State.Final() {
			ids = append(ids, id)
		}
	}
	slices.SortFunc(ids, models.ID.Compare)
	for _, id := range ids {
		f := e.flows[id]
		if f.dirty && !f.fresh {
			e.saveFlow(f)
		}
		if f.row.State.Final() && !f.inHand && !f.dirty {
			delete(e.flows, id)
		}
	}
}

// finishFlows puts new workflows into the plan as they stand at the end of the batch.
func (e *Engine) finishFlows() {
	for _, f := range e.b.flows {
		if f.fresh {
			e.b.plan.Workflows = append(e.b.plan.Workflows, f.row)
			f.fresh, f.dirty = false, false
		}
		f.inHand, f.ends = false, false
	}
}
