package engine

import (
	"slices"

	"nightshift/models"
)

// While nothing is known of what tasks of a workflow cost, each counts as this part of the limit, and few run at once.
const (
	unknownShare = 20
	unknownAtOne = 4
)

// takes says why a workflow takes no further n tasks of a depth.
func (f *flow) takes(n int64, depth int32) error {
	b := &f.row.Budget
	total := int64(f.row.Counts.Total())
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
	if f.row.Budget.Limited() {
		flags |= models.SpendsFlow
	}
	return flags
}

// spend books what an attempt of a workflow's task reported. Whether that shuts the workflow is judged when the task's state
// follows.
func (e *Engine) spend(row *models.Task, usage []byte) {
	used := models.SpendOf(usage)
	if row.Workflow.IsZero() || used == (models.Spend{}) {
		return
	}
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
	before := f.exhausted()
	f.row.Used.Add(used)
	if !before && f.exhausted() {
		e.b.plan.Events = append(e.b.plan.Events, models.Event{Env: row.Env, Name: "workflow.budget_exhausted", At: e.now, Workflow: row.Workflow, State: f.row.State.String(), Reason: f.exhaustedOf()})
	}
}

// spendLate books what an attempt reported after its lease was lost.
func (e *Engine) spendLate(r *Result) {
	if row := e.peek(r.Task); row != nil {
		e.spend(row, r.Usage)
		if f := e.flows[row.Workflow]; f != nil {
			e.judgeSpend(f)
		}
	}
}

func (f *flow) exhausted() bool { return f.exhaustedOf() != "" }

// exhaustedOf names the limit that is used up.
func (f *flow) exhaustedOf() string {
	b, u := &f.row.Budget, &f.row.Used
	switch {
	case b.CostMicro > 0 && u.CostMicro >= b.CostMicro:
		return "max_cost_usd"
	case b.Tokens > 0 && u.Tokens >= b.Tokens:
		return "max_tokens"
	}
	return ""
}

// judgeSpend shuts a workflow whose cost or tokens cover no further task, and opens it when they do again.
func (e *Engine) judgeSpend(f *flow) {
	if f.row.Budget.Limited() || e.board.Shut(f.row.ID)&models.FlowSpent != 0 {
		e.shut(f.row.Env, f.row.ID, models.FlowSpent, !f.covers())
	}
}

// covers says that one more task may start: what is used, what runs and it, each at the mean of those before, stay within
// the limits.
func (f *flow) covers() bool {
	b, u := &f.row.Budget, &f.row.Used
	live := int64(f.row.Counts[models.Running] + f.row.Counts[models.CancelRequested])
	if u.Attempts == 0 && live >= unknownAtOne && b.Limited() {
		return false
	}
	return fits(b.CostMicro, u.CostMicro, u.Attempts, live) && fits(b.Tokens, u.Tokens, u.Attempts, live)
}

func fits(limit, used, attempts, live int64) bool {
	if limit == 0 {
		return true
	}
	each := max(limit/unknownShare, 1)
	if attempts > 0 {
		each = max((used+attempts-1)/attempts, 1)
	}
	return used+(live+1)*each <= limit
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
