package engine

import (
	"nightshift/models"
	"nightshift/scheduler/board"
)

// Spawn makes children of a running task: they belong to the task, not to the attempt, so a key spawned before answers
// the child that has it.
type Spawn struct {
	Env   int32     `json:"env"`
	Task  models.ID `json:"task"`
	Token models.ID `json:"token"`
	// Session is what the worker sent along, zero when nothing: it must hold the lease.
	Session models.ID `json:"session,omitzero"`
	Tasks   []NewTask `json:"tasks"` // each with its Key; the edge has seen to it that none waits for who waits for it
}

// MostDepth is how deep a tree of tasks may grow where no budget says less.
const MostDepth = 100

func (e *Engine) needSpawn(n *models.Need, x *Spawn) {
	for i := range x.Tasks {
		n.Children = append(n.Children, models.ChildRef{Env: x.Env, Parent: x.Task, Key: x.Tasks[i].Key})
	}
	inside := members(&Submit{Tasks: x.Tasks})
	for i := range x.Tasks {
		for _, d := range x.Tasks[i].DependsOn {
			if !inside[d.Task] {
				n.Tasks = append(n.Tasks, models.TaskRef{Env: x.Env, ID: d.Task})
			}
		}
	}
	if lease := e.board.Leases[x.Token]; lease != nil && !lease.Row().Workflow.IsZero() {
		e.needFlow(n, models.TaskRef{Env: lease.Row().Env, ID: lease.Row().Workflow})
	}
}

// spawn makes the children that are not there yet, all or nothing.
func (e *Engine) spawn(cmd *Command) (*Answer, error) {
	x := cmd.Spawn
	lease := e.board.Leases[x.Token]
	if lease == nil || lease.Row().ID != x.Task || lease.Row().Env != x.Env {
		return nil, models.Errorf(models.LeaseLost, "the lease of %s has passed on: stop working on it", x.Task.Text(models.TaskPrefix))
	}
	if err := holdsSession(lease, x.Session); err != nil {
		return nil, err
	}
	answer := &Answer{Submitted: &Submitted{Tasks: make([]SubmittedTask, len(x.Tasks))}}
	fresh, at, known := e.unborn(x)
	flow, err := e.mayGrow(lease, int64(len(fresh)))
	if err != nil {
		return nil, err
	}
	if err := e.narrower(lease, fresh); err != nil {
		return nil, err
	}
	var changes []*change
	if len(fresh) > 0 {
		if changes, err = e.bear(lease, flow, &Submit{Env: x.Env, Tasks: fresh, InBatch: true}); err != nil {
			return nil, err
		}
	}
	for i, c := range changes {
		answer.Made = append(answer.Made, c.row.ID)
		known[at[i]] = c
	}
	e.b.fill = append(e.b.fill, func() {
		for i, c := range known { // any order: each has its place
			answer.Submitted.Tasks[i] = SubmittedTask{Row: c.row, Deduplicated: !c.fresh}
		}
	})
	return answer, nil
}

// unborn sorts out which children are still to be made, with their places in the body. Who waits for one that is there
// waits for that one.
func (e *Engine) unborn(x *Spawn) (fresh []NewTask, at []int, known map[int]*change) {
	known = map[int]*change{}
	born := map[models.ID]models.ID{}
	for i := range x.Tasks {
		ref := models.ChildRef{Env: x.Env, Parent: x.Task, Key: x.Tasks[i].Key}
		c := e.b.children[ref]
		if row, ok := e.b.facts.Children[ref]; ok && c == nil {
			e.b.facts.Tasks[models.TaskRef{Env: row.Env, ID: row.ID}] = row
			c = e.open(models.TaskRef{Env: row.Env, ID: row.ID})
		}
		if c == nil {
			fresh, at = append(fresh, x.Tasks[i]), append(at, i)
			continue
		}
		known[i], born[x.Tasks[i].ID] = c, c.row.ID
	}
	for i := range fresh {
		for j, d := range fresh[i].DependsOn {
			if id, ok := born[d.Task]; ok {
				fresh[i].DependsOn[j].Task = id
			}
		}
	}
	return fresh, at, known
}

// mayGrow says why a running task spawns no further n children, and which workflow they become part of.
func (e *Engine) mayGrow(lease *board.Lease, n int64) (*flow, error) {
	row := lease.Row()
	f := e.flows[row.Workflow]
	switch {
	case n == 0:
		return f, nil
	case row.State != models.Running:
		return nil, models.Errorf(models.StateConflict, "the task is asked to stop: it spawns nothing more")
	case row.Depth >= MostDepth:
		return nil, models.Errorf(models.WorkflowBudgetExceeded, "max_depth is %d: a tree of tasks grows no deeper", MostDepth)
	case f == nil:
		return nil, e.takesSubmits(row.Env)
	case f.row.Cancelling:
		return nil, models.Errorf(models.StateConflict, "the workflow was cancelled: it grows no more")
	}
	if err := f.takes(n, row.Depth+1); err != nil {
		return nil, err
	}
	return f, e.takesSubmits(row.Env)
}

// ParentsPriority stands for a priority that a child does not name: it is as important as its parent.
const ParentsPriority = -1

// bear makes the children of a running task.
func (e *Engine) bear(lease *board.Lease, flow *flow, s *Submit) ([]*change, error) {
	for i := range s.Tasks {
		if t := &s.Tasks[i]; t.Priority == ParentsPriority {
			t.Priority = lease.Row().Priority
		}
	}
	placements, err := e.resolve(s)
	if err != nil {
		return nil, err
	}
	parent := e.enlist(lease.Row())
	parent.row.Flags |= models.HasChildren
	e.sync(parent)
	changes, inside := make([]*change, len(placements)), map[models.ID]*change{}
	for i, p := range placements {
		c := e.makeTask(s, p, flow)
		c.row.Parent, c.row.Depth = parent.row.ID, parent.row.Depth+1
		if p.task.Detach {
			c.row.Flags |= models.Detached
		} else {
			c.row.Flags |= models.HasDependants
			e.b.plan.Edges = append(e.b.plan.Edges, models.Edge{Env: s.Env, From: c.row.ID, To: parent.row.ID, On: models.OnChild})
			e.waitFor(parent)
		}
		e.b.children[models.ChildRef{Env: s.Env, Parent: parent.row.ID, Key: c.row.Key}] = c
		changes[i], inside[c.row.ID] = c, c
	}
	for i, p := range placements {
		e.link(s.Env, changes[i], p, inside, nil)
	}
	for i, p := range placements {
		e.enterNew(changes[i], p.task)
	}
	return changes, nil
}

// waitFor raises the counter of a task by one that it will wait for.
func (e *Engine) waitFor(c *change) {
	for i := range e.b.plan.Waits {
		if w := &e.b.plan.Waits[i]; w.Env == c.row.Env && w.Task == c.row.ID {
			w.More++
			return
		}
	}
	e.b.plan.Waits = append(e.b.plan.Waits, models.Wait{Env: c.row.Env, Task: c.row.ID, More: 1})
}

// suspend ends an attempt without using it: slot, lease and key are free, and the task comes back when its children have
// ended. A dead child counts as one that has.
func (e *Engine) suspend(lease *board.Lease, r *Result) *change {
	ref := models.TaskRef{Env: lease.Row().Env, ID: lease.Row().ID}
	open := e.b.facts.Tasks[ref].Remaining
	for _, w := range e.b.plan.Waits {
		if w.Env == ref.Env && w.Task == ref.ID {
			open += w.More
		}
	}
	c, charged := e.endAttempt(lease, models.AttemptSuspended, nil, r)
	e.move(c, models.Suspends, models.Pending)
	e.place(c)
	ev := e.event(c, "task.suspended")
	ev.Pool, ev.Charged = lease.Pool, charged
	if f := e.flows[c.row.Workflow]; f != nil {
		f.ends = true // it may move on at once
	}
	e.b.fill = append(e.b.fill, func() {
		if c.row.State == models.Pending && open == 0 { // nothing is left that could set it free later
			row := c.row
			row.Remaining = 0
			e.b.bornFreed = append(e.b.bornFreed, row)
		}
	})
	return c
}

// stopChildren lets a cancel reach the children that are not on their own, slice by slice.
func (e *Engine) stopChildren(row *models.Task, reason string) {
	if f := e.flows[row.Workflow]; f != nil && f.row.Cancelling {
		return // it reaches them anyway
	}
	e.addCursor(models.Cursor{ID: e.newID(), Env: row.Env, Kind: models.CancelChildren, Target: row.ID, Reason: reason, Actor: models.Actor{Kind: "brain"}, At: e.now})
}
