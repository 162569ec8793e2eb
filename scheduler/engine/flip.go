package engine

import (
	"slices"

	"nightshift/models"
)

// flip makes a staged body part of the world. Its tasks enter in slices and count as pending until they have.
func (e *Engine) flip(cmd *Command) (*Answer, error) {
	x := cmd.Flip
	if answer, err := e.replay(x.Once); answer != nil || err != nil {
		return answer, err
	}
	if err := e.takesSubmits(x.Env); err != nil {
		return nil, err
	}
	staged, ok := e.b.facts.Stagings[x.Staging]
	switch {
	case !ok || staged.Env != x.Env:
		return nil, models.Errorf(models.NotFound, "nothing was staged under this id")
	case !staged.Flipped && staged.Tasks != int64(x.Tasks):
		return nil, models.Errorf(models.StateConflict, "%d tasks were staged, not %d", staged.Tasks, x.Tasks)
	}
	answer := &Answer{Submitted: &Submitted{}}
	if staged.Flipped || slices.Contains(e.b.plan.Flips, x.Staging) {
		e.flippedBefore(x, &staged, answer.Submitted)
		return answer, nil
	}
	if err := e.mayQueue(x.Env, int64(x.Tasks)); err != nil {
		return nil, err
	}
	f, err := e.flipInto(x, answer.Submitted)
	if err != nil {
		return nil, err
	}
	if f != nil {
		f.row.Counts[models.Staged] += x.Tasks
	}
	e.b.plan.Flips = append(e.b.plan.Flips, x.Staging)
	e.board.AddQueued(x.Env, int64(x.Tasks))
	e.addCursor(models.Cursor{ID: e.newID(), Env: x.Env, Kind: models.EnterStaged, Target: x.Staging, Matched: int64(x.Tasks), Wide: x.Wide, At: e.now, Actor: cmd.Actor})
	made := x.Staging // of a new workflow they have one id
	if !x.Into.IsZero() {
		made = x.Into
	}
	e.recordOnce(x.Once, []models.ID{made})
	return answer, nil
}

// flipInto is the workflow that a staged body becomes part of: a new one, one it is added to, or none.
func (e *Engine) flipInto(x *Flip, answer *Submitted) (*flow, error) {
	if x.Into.IsZero() {
		return e.bornFlow(x.Env, x.Workflow, int64(x.Tasks), answer)
	}
	return e.growFlow(models.TaskRef{Env: x.Env, ID: x.Into}, x.Grown, int64(x.Tasks), answer)
}

// flippedBefore answers for a flip that was done before its answer got lost.
func (e *Engine) flippedBefore(x *Flip, staged *models.Staging, answer *Submitted) {
	if x.Workflow != nil {
		answer.Workflow = &models.Workflow{Env: x.Env, ID: x.Workflow.ID, Name: x.Workflow.Name, Input: x.Workflow.Input, CreatedAt: staged.At}
	}
	if f := e.flows[x.Into]; f != nil && f.row.Env == x.Env {
		row := f.row
		answer.Workflow = &row
	}
}

// enterStaged lets a staged row into the world, unless its workflow was cancelled meanwhile or is gone.
func (e *Engine) enterStaged(c *change) bool {
	if c.row.State != models.Staged {
		return false
	}
	e.note(tallySubmitted, &c.row)
	if f := e.flows[c.row.Workflow]; f != nil && f.row.Cancelling {
		return e.stop(c, "the workflow was cancelled")
	} else if f == nil && !c.row.Workflow.IsZero() {
		return e.stop(c, "the workflow is not there any more")
	}
	if f := e.flows[c.row.Workflow]; f != nil {
		c.row.Flags |= f.flags()
		c.row.AgeKey = -e.importance(f, 0)
	}
	delay, expires := c.row.DelaySeconds, int64(c.row.ExpiresAt)
	c.row.DelaySeconds, c.row.ExpiresAt, c.row.CreatedAt, c.row.UpdatedAt = 0, 0, e.now, e.now
	if c.row.HardSeconds == 0 {
		if lane := e.board.Lanes[c.row.Lane]; lane != nil {
			c.row.HardSeconds = lane.Kind.DefaultHardSeconds()
		}
	}
	from := c.row.State
	e.linkOutside(c)
	e.board.AddQueued(c.row.Env, -1) // it counted since its body flipped
	e.settleBirth(c, delay, expires)
	e.countFlow(c, from, c.row.State)
	if c.row.State == models.Pending && (c.row.Killed > 0 || c.row.Remaining == 0) {
		e.b.bornFreed = append(e.b.bornFreed, c.row)
	}
	e.event(c, "task.created")
	return true
}

// linkedAtOnce is about how many edges to tasks outside a body are judged in one batch.
const linkedAtOnce = 5_000

// linkOutside judges what a row that enters waits for outside its body, as a submit does: what has ended fires its edge or
// kills it now, what has not will. The row's counters rise by what that says.
func (e *Engine) linkOutside(c *change) {
	edges := e.b.facts.Outside[models.TaskRef{Env: c.row.Env, ID: c.row.ID}]
	if len(edges) == 0 {
		return
	}
	wait := models.Wait{Env: c.row.Env, Task: c.row.ID}
	for _, edge := range edges {
		edge.State = edge.On.After(models.Skipped) // what became of one that is not kept any more, nobody knows
		if row := e.peek(models.TaskRef{Env: edge.Env, ID: edge.From}); row != nil {
			if edge.State = edge.On.After(row.EndState()); edge.State == models.EdgeOpen {
				e.hasDependant(row)
			}
		}
		switch edge.State {
		case models.EdgeOpen:
			wait.More++
		case models.EdgeKilled:
			wait.Killed++
		}
		e.b.plan.Linked = append(e.b.plan.Linked, edge)
	}
	c.row.Remaining += wait.More
	c.row.Killed += wait.Killed
	if wait.More+wait.Killed > 0 {
		e.b.plan.Waits = append(e.b.plan.Waits, wait)
	}
}
