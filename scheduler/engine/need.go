package engine

import (
	"slices"

	"nightshift/models"
)

// flowsABatch is how many workflows are read a batch beside those that commands name: each is counted task by task.
const flowsABatch = 20

// Need says what must be read before the batch can be decided.
func (e *Engine) Need(cmds []*Command) *models.Need {
	n := &models.Need{}
	for ref := range e.want { // any order: sorted below
		n.Workflows = append(n.Workflows, ref)
	}
	slices.SortFunc(n.Workflows, func(a, b models.TaskRef) int { return a.ID.Compare(b.ID) })
	n.Workflows = n.Workflows[:min(len(n.Workflows), flowsABatch)]
	e.asked = slices.Clone(n.Workflows)
	if i := e.dueCursor(); i >= 0 && !e.ease.alone {
		n.Slices = append(n.Slices, models.SliceNeed{Cursor: e.cursors[i], Limit: e.sliceSize(&e.cursors[i])})
		if c := e.cursors[i]; c.Kind == models.CancelWorkflow || c.Kind == models.RankWorkflow || c.Kind == models.RedriveWorkflow {
			e.needFlow(n, models.TaskRef{Env: c.Env, ID: c.Target})
		}
	}
	e.needJudged(n)
	e.needChoices(n)
	if !e.ease.alone {
		e.needSchedules(n)
	}
	for _, cmd := range cmds {
		e.need(n, cmd)
	}
	return n
}

func (e *Engine) need(n *models.Need, cmd *Command) {
	switch {
	case cmd.Submit != nil:
		e.needSubmit(n, cmd)
	case cmd.Flip != nil:
		e.needFlip(n, cmd.Flip)
	case cmd.Heartbeat != nil && !cmd.Heartbeat.Task.IsZero():
		n.Tasks = append(n.Tasks, models.TaskRef{Env: cmd.Heartbeat.Env, ID: cmd.Heartbeat.Task})
	case cmd.Settle != nil:
		e.needSettle(n, cmd.Settle)
	case cmd.Cancel != nil && !cmd.Cancel.Workflow.IsZero():
		e.needFlow(n, models.TaskRef{Env: cmd.Cancel.Env, ID: cmd.Cancel.Workflow})
	case cmd.Cancel != nil:
		n.Tasks = append(n.Tasks, models.TaskRef{Env: cmd.Cancel.Env, ID: cmd.Cancel.Task})
	case cmd.Redrive != nil:
		n.Tasks = append(n.Tasks, models.TaskRef{Env: cmd.Redrive.Env, ID: cmd.Redrive.Task})
		needDone(n, cmd)
	case cmd.Discard != nil:
		n.Tasks = append(n.Tasks, models.TaskRef{Env: cmd.Discard.Env, ID: cmd.Discard.Task})
		needDone(n, cmd)
	case cmd.Bulk != nil:
		needOnce(n, cmd.Bulk.Once)
		needDone(n, cmd)
	case cmd.Approve != nil:
		n.Tasks = append(n.Tasks, models.TaskRef{Env: cmd.Approve.Env, ID: cmd.Approve.Task})
	case cmd.Signal != nil:
		n.Tasks = append(n.Tasks, models.TaskRef{Env: cmd.Signal.Env, ID: cmd.Signal.Task})
		needDone(n, cmd)
	case cmd.Edit != nil:
		n.Tasks = append(n.Tasks, models.TaskRef{Env: cmd.Edit.Env, ID: cmd.Edit.Task})
		needDone(n, cmd)
	case cmd.Judge != nil:
		n.Tasks = append(n.Tasks, models.TaskRef{Env: cmd.Judge.Env, ID: cmd.Judge.Task})
		n.Qualities = append(n.Qualities, models.QualityRef{Env: cmd.Judge.Env, Task: cmd.Judge.Task, Source: cmd.Judge.Source})
	case cmd.Mark != nil:
		n.Watermarks = append(n.Watermarks, models.IdemRef{Env: cmd.Mark.Env, Key: cmd.Mark.Name})
		needDone(n, cmd)
	case cmd.Spawn != nil:
		e.needSpawn(n, cmd.Spawn)
	case cmd.Configure != nil:
		needOnce(n, cmd.Configure.Once)
		needVariables(n, cmd.Configure)
		e.needEdited(n, cmd.Configure)
	case cmd.Look != nil && cmd.Look.Explain != nil:
		e.needExplained(n, *cmd.Look.Explain)
	case cmd.Look != nil:
		e.needLive(n, cmd.Look.Live)
	case cmd.Steer != nil:
		e.needSteer(n, cmd)
	case cmd.Skip != nil:
		n.Tasks = append(n.Tasks, models.TaskRef{Env: cmd.Skip.Env, ID: cmd.Skip.Task})
	case cmd.Trigger != nil:
		needOnce(n, cmd.Trigger.Once)
		needDone(n, cmd)
		e.needSchedule(n, e.plans.all[cmd.Trigger.Schedule])
	case cmd.Backfill != nil:
		needOnce(n, cmd.Backfill.Once)
		needDone(n, cmd)
		if s := e.plans.all[cmd.Backfill.Schedule]; s != nil {
			e.needRuns(n, s, cmd.Backfill.Overlap)
		}
	case cmd.Recheck != nil:
		e.needRecheck(n, cmd.Recheck)
	case cmd.Publish != nil:
		e.needPublish(n, cmd)
	case cmd.Tick != nil:
		e.needTick(n)
	}
}

func needDone(n *models.Need, cmd *Command) {
	if cmd.Resent {
		n.Done = append(n.Done, cmd.ID)
	}
}

func needOnce(n *models.Need, once *Once) {
	if once != nil {
		n.Once = append(n.Once, models.OnceRef{Scope: once.Scope, Key: once.Key})
	}
}

func (e *Engine) needFlow(n *models.Need, ref models.TaskRef) {
	if e.flows[ref.ID] == nil && !slices.Contains(n.Workflows, ref) {
		n.Workflows = append(n.Workflows, ref)
	}
}

func (e *Engine) needSteer(n *models.Need, cmd *Command) {
	e.needFlow(n, models.TaskRef{Env: cmd.Steer.Env, ID: cmd.Steer.Workflow})
	needDone(n, cmd)
	if cmd.Steer.Retry {
		n.Slices = append(n.Slices, models.SliceNeed{Cursor: redriveOf(cmd), Limit: e.cfg.Slice})
	}
}

func (e *Engine) needFlip(n *models.Need, x *Flip) {
	needOnce(n, x.Once)
	n.Stagings = append(n.Stagings, x.Staging)
	if !x.Into.IsZero() {
		e.needFlow(n, models.TaskRef{Env: x.Env, ID: x.Into})
	}
}

func (e *Engine) needSubmit(n *models.Need, cmd *Command) {
	s := cmd.Submit
	needOnce(n, s.Once)
	if !s.Into.IsZero() {
		e.needFlow(n, models.TaskRef{Env: s.Env, ID: s.Into})
	}
	inside := members(s)
	for i := range s.Tasks {
		t := &s.Tasks[i]
		if t.IdemKey != "" {
			n.IdemKeys = append(n.IdemKeys, models.IdemRef{Env: s.Env, Key: t.IdemKey})
		}
		if t.Dedupe != nil {
			n.Dedupes = append(n.Dedupes, models.IdemRef{Env: s.Env, Key: t.Dedupe.Key})
		}
		if cmd.Resent {
			n.Tasks = append(n.Tasks, models.TaskRef{Env: s.Env, ID: t.ID})
		}
		for _, d := range t.DependsOn {
			if !inside[d.Task] {
				n.Tasks = append(n.Tasks, models.TaskRef{Env: s.Env, ID: d.Task})
			}
		}
	}
}

// needSettle asks for the retry policies of what failed, and for the attempts behind tokens no lease is known for.
func (e *Engine) needSettle(n *models.Need, s *Settle) {
	for i := range s.Results {
		r := &s.Results[i]
		lease := e.board.Leases[r.Token]
		if lease != nil && (r.Outcome != models.AttemptSucceeded || r.Mark != nil || r.Items != nil) {
			e.needCounted(n, lease.Row())
		}
		if lease != nil && lease.Row().Has(models.ChoosesModel) && r.Error != nil && r.Error.Class == "quality_too_low" {
			n.Choices = append(n.Choices, models.TaskRef{Env: lease.Row().Env, ID: lease.Row().ID})
		}
		if lease != nil && lease.Row().Has(models.Itemized) {
			e.needItems(n, lease.Row())
			continue
		}
		switch {
		case lease == nil && !r.Task.ID.IsZero():
			n.Tokens = append(n.Tokens, models.TokenRef{Env: r.Task.Env, Task: r.Task.ID, Token: r.Token})
			n.Tasks = append(n.Tasks, r.Task)
		case lease != nil && r.Outcome == models.AttemptSuspended:
			n.Tasks = append(n.Tasks, models.TaskRef{Env: lease.Row().Env, ID: lease.Row().ID}) // how many children are open
			if lease.Row().Has(models.HasPolicy) {
				n.Policies = append(n.Policies, models.TaskRef{Env: lease.Row().Env, ID: lease.Row().ID})
			}
		case lease != nil && r.Outcome == models.AttemptSucceeded && r.Mark != nil:
			e.needMark(n, lease.Row())
		case lease != nil && r.Outcome != models.AttemptSucceeded && lease.Row().Has(models.HasPolicy):
			n.Policies = append(n.Policies, models.TaskRef{Env: lease.Row().Env, ID: lease.Row().ID})
		}
	}
}

// needCounted asks for the workflow whose budget says whether a task is tried again.
func (e *Engine) needCounted(n *models.Need, row *models.Task) {
	if row.Has(models.SpendsFlow) {
		e.needFlow(n, models.TaskRef{Env: row.Env, ID: row.Workflow})
	}
}

// needTick asks for the retry policies of what may time out before the next sweep.
func (e *Engine) needTick(n *models.Need) {
	for _, lease := range e.board.Leases { // any order: sorted below
		row := lease.Row()
		near := row.HardSeconds > 0 && e.now-row.StartedAt+2*sweepEvery >= models.Instant(row.HardSeconds)*1_000_000
		if near && row.Has(models.HasPolicy) {
			n.Policies = append(n.Policies, models.TaskRef{Env: row.Env, ID: row.ID})
		}
		if near && row.Has(models.Itemized) {
			n.Items = append(n.Items, models.TaskRef{Env: row.Env, ID: row.ID})
		}
	}
	slices.SortFunc(n.Items, func(a, b models.TaskRef) int { return a.ID.Compare(b.ID) })
	slices.SortFunc(n.Policies, func(a, b models.TaskRef) int { return a.ID.Compare(b.ID) })
}

// needLive reads the tasks that somebody looks at and the board does not hold.
func (e *Engine) needLive(n *models.Need, refs []models.TaskRef) {
	for _, ref := range refs {
		if e.board.Held(ref.ID) == nil {
			n.Tasks = append(n.Tasks, ref)
		}
	}
}
