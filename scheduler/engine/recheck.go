package engine

import "nightshift/models"

// Recheck tells the brain what a sweep found: workflows to judge once more from their tasks' rows, and counters that are
// not what the rows say, which somebody must hear of. It answers how many of those it has set right (Matched).
type Recheck struct {
	Flows []models.TaskRef `json:"flows,omitempty"`
	Drift []Drifted        `json:"drift,omitempty"`
}

// Drifted is a counter that is not what the rows say. Where it is that of a task which waits for others, it is set right: a
// task that waits for one too many would never run.
type Drifted struct {
	Env      int32     `json:"env"`
	Task     models.ID `json:"task,omitzero"`
	Workflow models.ID `json:"workflow,omitzero"`
	What     string    `json:"what"`
	Waits    int32     `json:"waits,omitempty"` // for how many others the task waited by its counter, when the sweep looked
	More     int32     `json:"more,omitempty"`  // by how many its edges say more; below zero: less
}

func (e *Engine) needRecheck(n *models.Need, x *Recheck) {
	for _, ref := range x.Flows {
		e.needFlow(n, ref)
	}
	for _, d := range x.Drift {
		if d.More != 0 {
			n.Tasks = append(n.Tasks, models.TaskRef{Env: d.Env, ID: d.Task})
		}
	}
}

// recheck lets the workflows, which were read with the facts of this batch, be judged with the others of it.
func (e *Engine) recheck(x *Recheck) (*Answer, error) {
	for _, ref := range x.Flows {
		if f := e.flows[ref.ID]; f != nil && f.row.Env == ref.Env {
			e.touchFlow(f)
		}
	}
	answer := &Answer{}
	for i := range x.Drift {
		d := &x.Drift[i]
		why := d.What
		if e.setRight(d) {
			why += "; it is set right"
			answer.Matched++
		}
		e.b.plan.Events = append(e.b.plan.Events, models.Event{Env: d.Env, Name: "counter.drifted", At: e.now, Task: d.Task, Workflow: d.Workflow, Reason: why})
	}
	return answer, nil
}

// setRight moves a task's counter by what it was off. Edges that moved since the sweep looked have moved the counter with
// them, so what it is off by is still true; one that has another value than the sweep saw waits for the next sweep, so that
// two replicas that found the same do not both put it right.
func (e *Engine) setRight(d *Drifted) bool {
	row, read := e.b.facts.Tasks[models.TaskRef{Env: d.Env, ID: d.Task}]
	if !read || d.More == 0 || row.State != models.Pending || row.Remaining != d.Waits || row.Remaining+d.More < 0 || e.raised(d.Task) {
		return false
	}
	if c := e.b.rows[d.Task]; c != nil && c.row.State != models.Pending {
		return false // it was ended in this very batch
	}
	e.b.plan.Waits = append(e.b.plan.Waits, models.Wait{Env: d.Env, Task: d.Task, More: d.More})
	if row.Remaining += d.More; row.Remaining == 0 {
		e.b.bornFreed = append(e.b.bornFreed, row)
	}
	return true
}

// raised says that this batch has moved a task's counter already.
func (e *Engine) raised(task models.ID) bool {
	for i := range e.b.plan.Waits {
		if e.b.plan.Waits[i].Task == task {
			return true
		}
	}
	return false
}
