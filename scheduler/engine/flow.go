package engine

import (
	"slices"

	"nightshift/models"
)

// flow is a workflow the brain has in hand: its counts follow every move of its tasks.
type flow struct {
	row    models.Workflow
	first  bool // finish_first: its work goes before that of workflows that came later
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
			f.first = finishesFirst(f.row.Input)
			e.flows[ref.ID] = f
			e.touchFlow(f)
			e.weighFlow(f)
			e.shut(f.row.Env, f.row.ID, models.FlowSpent, false) // what an earlier version shut is judged task by task
			e.dirty = true
		}
	}
	for _, ref := range e.asked { // those that were not found do not exist
		if delete(e.want, ref); e.flows[ref.ID] == nil {
			if e.b.gone == nil {
				e.b.gone = map[models.ID]bool{}
			}
			e.b.gone[ref.ID] = true
		}
	}
	e.asked = nil
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

// flowFor is the workflow that tasks are made in: a new one, one they are added to, or none.
func (e *Engine) flowFor(s *Submit, answer *Submitted) (*flow, error) {
	if s.Into.IsZero() {
		return e.bornFlow(s.Env, s.Workflow, int64(len(s.Tasks)), answer)
	}
	return e.growFlow(models.TaskRef{Env: s.Env, ID: s.Into}, s.Grown, int64(len(s.Tasks)), answer)
}

// growFlow is a workflow that n tasks are added to. Their keys were looked at when it had grown so often.
func (e *Engine) growFlow(ref models.TaskRef, grown int32, n int64, answer *Submitted) (*flow, error) {
	f := e.flows[ref.ID]
	switch {
	case f == nil || f.row.Env != ref.Env:
		return nil, models.Errorf(models.NotFound, "there is no workflow %s", ref.ID.Text(models.WorkflowPrefix))
	case f.row.Grown != grown:
		return nil, models.Errorf(models.Stale, "tasks were added to the workflow meanwhile")
	}
	if err := Grows(&f.row, n); err != nil {
		return nil, err
	}
	f.row.Grown++
	f.row.UpdatedAt = e.now
	e.touchFlow(f)
	if !f.fresh {
		e.saveFlow(f)
	}
	e.b.fill = append(e.b.fill, func() { row := f.row; answer.Workflow = &row })
	return f, nil
}

// Grows says why n tasks cannot be added to a workflow.
func Grows(row *models.Workflow, n int64) error {
	if row.State.Final() || row.Cancelling {
		state := row.State.String()
		if row.Cancelling {
			state = "being cancelled"
		}
		return models.Errorf(models.StateConflict, "the workflow is %s: it grows only while it runs", state)
	}
	return takes(row, n, 0)
}

// bornFlow makes the workflow of a submit of n tasks.
func (e *Engine) bornFlow(env int32, w *NewWorkflow, n int64, answer *Submitted) (*flow, error) {
	if w == nil {
		return nil, nil
	}
	f := &flow{fresh: true, first: finishesFirst(w.Input), row: models.Workflow{
		Env: env, ID: w.ID, Name: w.Name, Priority: w.Priority, Input: w.Input, CreatedAt: e.now, UpdatedAt: e.now,
		Stops: w.Stops, Budget: w.Budget, RerunOf: w.RerunOf, Items: w.Items,
	}}
	if err := f.takes(n, 0); err != nil {
		return nil, err
	}
	if f.row.EndsAt = endsAt(&f.row); f.row.EndsAt > 0 {
		e.ends[models.TaskRef{Env: env, ID: w.ID}] = f.row.EndsAt
	}
	e.flows[w.ID] = f
	e.weighFlow(f)
	e.touchFlow(f)
	if !w.Schedule.IsZero() {
		e.b.plan.Schedules.Tasks = append(e.b.plan.Schedules.Tasks, models.ScheduleTask{Env: env, Schedule: w.Schedule, Task: w.ID})
	}
	e.b.plan.Events = append(e.b.plan.Events, models.Event{Env: env, Name: "workflow.started", At: e.now, Workflow: w.ID, State: models.WorkflowRunning.String()})
	e.b.fill = append(e.b.fill, func() { row := f.row; answer.Workflow = &row })
	return f, nil
}

// ownFlow is the workflow that a task is made in: that of the body, or one of its own, which has the task's budget.
func (e *Engine) ownFlow(env int32, t *NewTask, body *flow) (*flow, error) {
	if t.Own == nil || body != nil {
		return body, nil
	}
	return e.bornFlow(env, t.Own, 1, &Submitted{})
}

// bornCount counts a task that was just made.
func (e *Engine) bornCount(c *change) {
	if f := e.flows[c.row.Workflow]; f != nil && !c.row.Workflow.IsZero() {
		f.row.Counts[c.row.State]++
		if c.row.Depth > f.row.Depth {
			f.row.Depth, f.dirty = c.row.Depth, true
		}
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
		state, known := e.stateOf(f, waiting[f.row.ID] || len(e.unfired) > 0) // edges left to move may free what waits
		if known {
			e.setFlow(f, state)
			e.flowMoved(f)
		} else if f.ends || len(e.unfired) > 0 {
			e.again = append(e.again, f)
		}
		if known && f.ended() && f.row.Counts[models.DeadLetter] == 0 { // nothing is left that a gate could hold
			e.shut(f.row.Env, f.row.ID, e.board.Shut(f.row.ID), false)
		}
	}
}

// stateOf is where a workflow stands now. It is not known while it hangs on what this batch frees: look again then.
func (e *Engine) stateOf(f *flow, waiting bool) (state models.WorkflowState, known bool) {
	c := &f.row.Counts
	gate := e.board.Shut(f.row.ID)
	broken := c[models.Failed]+c[models.DeadLetter] > 0
	live := c[models.Staged] + c[models.Running] + c[models.CancelRequested]
	switch {
	case c[models.DeadLetter] > 0 && e.redriving(f.row.ID) && !f.row.Cancelling && gate&models.FlowPaused == 0:
		return models.WorkflowRunning, true
	case c.Left() == 0:
	case gate&models.FlowPaused != 0 && !f.row.Cancelling:
		return models.WorkflowPaused, true
	case gate&models.FlowStopped != 0 && live == 0 && broken && !f.row.Cancelling:
		return models.WorkflowFailed, true // what waits may be opened again
	case f.moving() > 0:
		return models.WorkflowRunning, true
	}
	switch {
	case c[models.Pending] > 0 && (f.ends || waiting || c[models.DeadLetter] == 0):
		return 0, false
	case broken || f.row.Over:
		return models.WorkflowFailed, true
	case f.row.Cancelling:
		return models.WorkflowCancelled, true
	}
	return models.WorkflowSucceeded, true
}

func (e *Engine) setFlow(f *flow, state models.WorkflowState) {
	if f.row.State == state {
		return
	}
	before := f.row.State
	f.row.State, f.row.UpdatedAt, f.dirty = state, e.now, true
	f.row.FinishedAt = 0
	name := ""
	switch {
	case state.Final():
		f.row.FinishedAt = e.now
		name = "workflow." + state.String()
	case before.Final():
		name = "workflow.started"
	}
	if name != "" {
		e.b.plan.Events = append(e.b.plan.Events, models.Event{Env: f.row.Env, Name: name, At: e.now, Workflow: f.row.ID, State: state.String()})
	}
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
			e.board.LetGoFlow(id)
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
