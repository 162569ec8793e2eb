package engine

import (
	"slices"

	"nightshift/models"
	"nightshift/scheduler/retry"
)

// takes says why a workflow takes no further n tasks of a depth.
func (f *flow) takes(n int64, depth int32) error { return takes(&f.row, n, depth) }

func takes(row *models.Workflow, n int64, depth int32) error {
	b, total := &row.Budget, int64(row.Counts.Total())
	switch {
	case b.Tasks > 0 && total+n > int64(b.Tasks):
		return models.Errorf(models.WorkflowBudgetExceeded, "max_tasks is %d: the workflow has %d and would get %d more", b.Tasks, total, n)
	case b.Depth > 0 && depth > b.Depth:
		return models.Errorf(models.WorkflowBudgetExceeded, "max_depth is %d: these tasks would have the depth %d", b.Depth, depth)
	}
	return nil
}

// flags are what a task of the workflow carries in its row, so that its start and its end can be decided by it.
func (f *flow) flags() (flags models.Flags) {
	if f.row.Stops {
		flags |= models.StopsFlow
	}
	if f.row.Budget.Counted() {
		flags |= models.SpendsFlow
	}
	return flags
}

// spend books what an attempt of a workflow's task used.
func (e *Engine) spend(row *models.Task, used models.Spend) {
	if row.Workflow.IsZero() || used == (models.Spend{}) {
		return
	}
	e.bookSpend(row, used)
}

// outOfRetries takes a further attempt away from a task whose workflow has used up its budget of retries, and says so; else it
// books the retry. A workflow with such a limit is in hand: whoever decides on a failure has asked for it.
func (e *Engine) outOfRetries(row *models.Task, v *retry.Verdict) bool {
	f := e.flows[row.Workflow]
	if !v.Again || !v.Uses || row.Workflow.IsZero() || f == nil || f.row.Budget.Retries == 0 {
		return false
	}
	if f.row.Used.Retries >= f.row.Budget.Retries {
		v.Again = false
		return true
	}
	e.bookSpend(row, models.Spend{Retries: 1})
	return false
}

// bookSpend books what a workflow used.
func (e *Engine) bookSpend(row *models.Task, used models.Spend) {
	i := slices.IndexFunc(e.b.plan.Spends, func(s models.FlowSpend) bool { return s.Workflow == row.Workflow && s.Env == row.Env })
	if i < 0 {
		i = len(e.b.plan.Spends)
		e.b.plan.Spends = append(e.b.plan.Spends, models.FlowSpend{Env: row.Env, Workflow: row.Workflow})
	}
	e.b.plan.Spends[i].Add(used)
	f := e.flows[row.Workflow]
	if f == nil {
		e.wantFlow(row) // it is judged when it is known
		return
	}
	before := f.exhaustedOf()
	f.row.Used.Add(used)
	e.weighFlow(f)
	if now := f.exhaustedOf(); before == "" && now != "" {
		e.b.plan.Events = append(e.b.plan.Events, models.Event{Env: row.Env, Name: "workflow.budget_exhausted", At: e.now, Workflow: row.Workflow, State: f.row.State.String(), Reason: now})
	}
}

// exhaustedOf names the limit that is used up.
func (f *flow) exhaustedOf() string {
	b, u := &f.row.Budget, &f.row.Used
	switch {
	case b.CostMicro > 0 && u.CostMicro >= b.CostMicro:
		return "max_cost_usd"
	case b.Tokens > 0 && u.Tokens >= b.Tokens:
		return "max_tokens"
	case b.Retries > 0 && u.Retries >= b.Retries:
		return "max_retries"
	}
	return ""
}

// weighFlow says to the board what a workflow may spend and has spent.
func (e *Engine) weighFlow(f *flow) {
	e.board.SetFlow(f.row.Env, f.row.ID, f.row.Budget, f.row.Used)
}

// known says that a task's workflow is in hand, as the start of one that spends of a limit needs; else it is read first.
func (e *Engine) known(row *models.Task) bool {
	if !row.Has(models.SpendsFlow) || e.flows[row.Workflow] != nil {
		return true
	}
	e.wantFlow(row)
	return false
}

// endFlows ends the workflows whose run time is over: what waits is cancelled, what runs is asked to stop.
func (e *Engine) endFlows() {
	var due []models.TaskRef
	for ref, at := range e.ends { // any order: sorted below
		if at <= e.now {
			due = append(due, ref)
		}
	}
	slices.SortFunc(due, func(a, b models.TaskRef) int { return a.ID.Compare(b.ID) })
	for _, ref := range due {
		f := e.flows[ref.ID]
		if f == nil {
			e.want[ref] = true // the next sweep has it
			continue
		}
		delete(e.ends, ref)
		if f.row.State.Final() && f.row.Counts.Left() == 0 || f.row.EndsAt == 0 {
			continue
		}
		if f.row.EndsAt > e.now {
			e.ends[ref] = f.row.EndsAt
			continue
		}
		f.row.Over, f.row.UpdatedAt = true, e.now
		e.b.plan.Events = append(e.b.plan.Events, models.Event{Env: ref.Env, Name: "workflow.budget_exhausted", At: e.now, Workflow: ref.ID, State: f.row.State.String(), Reason: "max_runtime_seconds"})
		e.stopFlow(f, "max_runtime_seconds is over", models.Actor{Kind: "brain"})
	}
}

// stopFlow is the row that comes first when a workflow is cancelled; its tasks follow in slices.
func (e *Engine) stopFlow(f *flow, reason string, actor models.Actor) {
	f.row.Cancelling, f.row.UpdatedAt = true, e.now
	e.touchFlow(f)
	if !f.fresh {
		e.saveFlow(f)
	}
	e.addCursor(models.Cursor{ID: e.newID(), Env: f.row.Env, Kind: models.CancelWorkflow, Target: f.row.ID, Reason: reason, Actor: actor, At: e.now, Matched: int64(f.row.Counts.Total())})
}

// endsAt is when a workflow ends by its run time; 0: never.
func endsAt(w *models.Workflow) models.Instant {
	if w.Budget.RuntimeSeconds == 0 {
		return 0
	}
	return w.CreatedAt.Add(models.Seconds(int(w.Budget.RuntimeSeconds)))
}
