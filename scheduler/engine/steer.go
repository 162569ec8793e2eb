package engine

import (
	"encoding/json"
	"slices"

	"nightshift/models"
)

// Steer asks something of a workflow: exactly one of its verbs is set.
type Steer struct {
	Env      int32     `json:"env"`
	Workflow models.ID `json:"workflow"`
	Pause    bool      `json:"pause,omitempty"`  // what has not started waits; what runs goes on
	Resume   bool      `json:"resume,omitempty"` // it goes on
	Retry    bool      `json:"retry,omitempty"`  // its dead letters get another life
	Edit     *FlowEdit `json:"edit,omitempty"`
	Reason   string    `json:"reason,omitempty"`
}

// FlowEdit changes a workflow. Nil fields stay as they are.
type FlowEdit struct {
	Priority *int16             `json:"priority,omitempty"`
	Labels   map[string]*string `json:"labels,omitempty"`  // merged; nil takes one away
	Version  *int64             `json:"version,omitempty"` // the If-Match: the moment of the last edit, in µs; nil takes whatever stands
	Budget   *models.FlowBudget `json:"budget,omitempty"`  // its fields that are above zero replace the limits
}

// Skip passes a task over: whoever waits for it goes on as if it had succeeded, with no result.
type Skip struct {
	Env    int32     `json:"env"`
	Task   models.ID `json:"task"`
	Reason string    `json:"reason"`
}

// steer does what is asked of a workflow.
func (e *Engine) steer(cmd *Command) (*Answer, error) {
	x := cmd.Steer
	f := e.flows[x.Workflow]
	if f == nil || f.row.Env != x.Env {
		return nil, models.Errorf(models.NotFound, "there is no workflow %s", x.Workflow.Text(models.WorkflowPrefix))
	}
	answer := &Answer{}
	e.b.fill = append(e.b.fill, func() { row := f.row; answer.Workflow = &row })
	if _, done := e.b.facts.Done[cmd.ID]; done {
		return answer, nil
	}
	action, err := "", error(nil)
	switch {
	case x.Pause, x.Resume:
		action, err = e.pauseFlow(f, x.Pause)
	case x.Retry:
		action, err = e.retryFlow(f, cmd, answer)
	case x.Edit != nil:
		action, err = e.editFlow(f, cmd)
	default:
		return nil, models.Errorf(models.InvalidRequest, "the command asks nothing of the workflow")
	}
	if err != nil {
		return nil, err
	}
	if action != "" {
		e.b.plan.Done = append(e.b.plan.Done, cmd.ID)
		e.audit(cmd, x.Env, action, x.Workflow.Text(models.WorkflowPrefix), x.Reason)
	}
	return answer, nil
}

// ended says that nothing of a workflow can move any more, whatever is opened.
func (f *flow) ended() bool { return f.row.State.Final() && f.row.Counts.Left() == 0 }

func (e *Engine) pauseFlow(f *flow, on bool) (string, error) {
	if f.ended() || f.row.Cancelling {
		return "", models.Errorf(models.StateConflict, "the workflow is %s: nothing of it starts any more", f.row.State)
	}
	if paused := e.board.Shut(f.row.ID)&models.FlowPaused != 0; paused == on {
		return "", nil
	}
	f.row.UpdatedAt, f.dirty = e.now, true
	e.touchFlow(f)
	if !f.fresh {
		e.saveFlow(f)
	}
	e.shut(f.row.Env, f.row.ID, models.FlowPaused, on)
	if on {
		return "workflow.pause", nil
	}
	return "workflow.resume", nil
}

// retryFlow gives the dead letters of a workflow another life and lets a stopped one go on: as many as one batch moves at once,
// the others in slices. The answer has the cursor that goes on with them.
func (e *Engine) retryFlow(f *flow, cmd *Command, answer *Answer) (string, error) {
	stopped := e.board.Shut(f.row.ID)&models.FlowStopped != 0
	dead := f.row.Counts[models.DeadLetter]
	switch {
	case f.row.Cancelling:
		return "", models.Errorf(models.StateConflict, "the workflow was cancelled")
	case dead == 0 && !(stopped && f.row.Counts.Left() > 0):
		return "", models.Errorf(models.StateConflict, "the workflow is %s and has no dead letters", f.row.State)
	}
	e.shut(f.row.Env, f.row.ID, models.FlowStopped, false)
	e.touchFlow(f)
	cursor := redriveOf(cmd)
	cursor.ID, cursor.Matched, cursor.Actor, cursor.At = e.newID(), int64(dead), cmd.Actor, e.now
	e.sliceRows(&cursor, e.b.facts.Slices[cmd.ID])
	if f.row.Counts[models.DeadLetter] > 0 {
		e.addCursor(cursor)
		answer.Cursor = &cursor
	}
	return "workflow.retry", nil
}

// redriveOf is the cursor over the dead letters of the workflow that a command retries.
func redriveOf(cmd *Command) models.Cursor {
	return models.Cursor{ID: cmd.ID, Env: cmd.Steer.Env, Kind: models.RedriveWorkflow, Target: cmd.Steer.Workflow, Reason: cmd.Steer.Reason}
}

// redriving says that dead letters of a workflow are still to get another life.
func (e *Engine) redriving(flow models.ID) bool {
	return slices.ContainsFunc(e.cursors, func(c models.Cursor) bool { return c.Kind == models.RedriveWorkflow && c.Target == flow })
}

func (e *Engine) editFlow(f *flow, cmd *Command) (string, error) {
	x := cmd.Steer.Edit
	if x.Version != nil && *x.Version != int64(f.row.UpdatedAt) {
		return "", models.Errorf(models.Stale, "the workflow was changed meanwhile: version %d stands", f.row.UpdatedAt)
	}
	if f.ended() && f.row.Counts[models.DeadLetter] == 0 && (x.Priority != nil || x.Budget != nil) { // dead letters may get another life
		return "", models.Errorf(models.StateConflict, "the workflow is %s: its labels alone can be changed", f.row.State)
	}
	input, err := relabel(f.row.Input, x.Labels)
	if err != nil {
		return "", err
	}
	if x.Budget != nil {
		if err := e.raiseBudget(f, x.Budget); err != nil {
			return "", err
		}
	}
	f.row.Input = input
	if x.Priority != nil && *x.Priority != f.row.Priority {
		f.row.Priority = *x.Priority
		e.addCursor(models.Cursor{ID: e.newID(), Env: f.row.Env, Kind: models.RankWorkflow, Target: f.row.ID, Matched: int64(f.row.Counts.Left()), Actor: cmd.Actor, At: e.now})
	}
	f.row.UpdatedAt = e.now
	e.touchFlow(f)
	if !f.fresh {
		e.saveFlow(f)
	}
	return "workflow.edit", nil
}

const mostLabels = 32

// relabel merges labels into what is kept of a workflow's body.
func relabel(input json.RawMessage, edit map[string]*string) (json.RawMessage, error) {
	if len(edit) == 0 {
		return input, nil
	}
	in, labels := map[string]json.RawMessage{}, map[string]string{}
	_ = json.Unmarshal(input, &in) // written by submit alone
	_ = json.Unmarshal(in["labels"], &labels)
	for key, value := range edit { // any order: each on its own
		if value == nil {
			delete(labels, key)
		} else {
			labels[key] = *value
		}
	}
	if len(labels) > mostLabels {
		return nil, models.Invalid("body.labels", "a workflow has at most %d labels, it would get %d", mostLabels, len(labels))
	}
	in["labels"], _ = json.Marshal(labels)
	text, err := json.Marshal(in)
	if err != nil {
		return nil, models.Errorf(models.Internal, "the workflow's input cannot be written: %w", err)
	}
	return text, nil
}

// raiseBudget raises limits; what a raised limit lets start, starts.
func (e *Engine) raiseBudget(f *flow, to *models.FlowBudget) error {
	next := f.row.Budget
	for _, l := range []struct {
		name     string
		now, new int64
		set      func(int64)
	}{
		{"max_tasks", int64(next.Tasks), int64(to.Tasks), func(v int64) { next.Tasks = int32(v) }},
		{"max_depth", int64(next.Depth), int64(to.Depth), func(v int64) { next.Depth = int32(v) }},
		{"max_runtime_seconds", int64(next.RuntimeSeconds), int64(to.RuntimeSeconds), func(v int64) { next.RuntimeSeconds = int32(v) }},
		{"max_cost_usd", next.CostMicro, to.CostMicro, func(v int64) { next.CostMicro = v }},
		{"max_tokens", next.Tokens, to.Tokens, func(v int64) { next.Tokens = v }},
		{"max_retries", next.Retries, to.Retries, func(v int64) { next.Retries = v }},
	} {
		switch {
		case l.new == 0 || l.new == l.now:
		case l.now == 0:
			return models.Invalid("body.budget."+l.name, "the workflow has no such limit: it cannot get one while it runs")
		case l.new < l.now:
			return models.Invalid("body.budget."+l.name, "a limit is only raised while the workflow runs")
		default:
			l.set(l.new)
		}
	}
	f.row.Budget = next
	f.row.EndsAt = endsAt(&f.row)
	if ref := (models.TaskRef{Env: f.row.Env, ID: f.row.ID}); f.row.EndsAt > 0 && !f.row.Over {
		e.ends[ref] = f.row.EndsAt
	}
	e.weighFlow(f)
	return nil
}

// reprioritise gives a task the priority of its workflow; one that is ready keeps its age and finds its new place.
func (e *Engine) reprioritise(c *change) bool {
	f := e.flows[c.row.Workflow]
	if f == nil || c.row.State.Final() || c.row.Priority == f.row.Priority {
		return false
	}
	shift := int64(c.row.Priority-f.row.Priority) * models.AgePerPoint
	ready := c.row.State == models.Ready
	if ready {
		e.stepOut(c)
	}
	c.row.Priority, c.row.UpdatedAt = f.row.Priority, e.now
	if c.row.ReadyAt > 0 {
		c.row.AgeKey += shift
	}
	if ready {
		e.place(c)
	} else {
		e.sync(c)
	}
	return true
}

// skip passes a task over.
func (e *Engine) skip(cmd *Command) (*Answer, error) {
	x := cmd.Skip
	c := e.open(models.TaskRef{Env: x.Env, ID: x.Task})
	if c == nil || c.row.State == models.Staged {
		return nil, models.Errorf(models.NotFound, "there is no task %s", x.Task.Text(models.TaskPrefix))
	}
	answer := &Answer{}
	e.b.fill = append(e.b.fill, func() { row := c.row; answer.Task = &row })
	if c.row.State == models.Skipped && c.row.Has(models.SkippedByHand) {
		return answer, nil
	}
	if _, ok := models.Step(models.PassedOver, c.row.State, models.Skipped); !ok {
		return nil, models.Errorf(models.StateConflict, "the task is %s: only one that waits or is a dead letter can be skipped", c.row.State)
	}
	c.row.Flags |= models.SkippedByHand
	c.row.Fingerprint = models.ID{}
	e.conclude(c, models.PassedOver, models.Skipped, "task.skipped").Reason = x.Reason
	e.audit(cmd, x.Env, "task.skip", x.Task.Text(models.TaskPrefix), x.Reason)
	return answer, nil
}
