package postgres

import "nightshift/models"

// reachable says which states the Law leads to in one step or several: a plan merges what a batch does to a task.
var reachable = func() (to [models.Skipped + 1][models.Skipped + 1]bool) {
	for _, t := range models.Law {
		for _, from := range t.From {
			to[from][t.To] = true
		}
	}
	for by := range to {
		for from := range to {
			for end := range to {
				to[from][end] = to[from][end] || to[from][by] && to[by][end]
			}
		}
	}
	return to
}()

// lawful refuses a plan that breaks the Law, before anything is sent. What the rows really are is guarded in SQL.
func lawful(p *models.Plan) error {
	for i := range p.Tasks {
		if t := &p.Tasks[i]; t.State <= models.Staged || t.State > models.Skipped {
			return models.Errorf(models.BadData, "task %s: a plan makes nothing %s", t.ID.Text(models.TaskPrefix), t.State)
		}
	}
	for i := range p.Changes {
		from, to, id := p.Changes[i].From, p.Changes[i].After.State, p.Changes[i].After.ID
		switch {
		case from < models.Staged || from > models.Skipped || to < models.Staged || to > models.Skipped:
			return models.Errorf(models.BadData, "task %s: there is no %s or no %s", id.Text(models.TaskPrefix), from, to)
		case from.Final():
			return models.Errorf(models.BadData, "task %s is %s: nothing final changes", id.Text(models.TaskPrefix), from)
		case from != to && !reachable[from][to]:
			return models.Errorf(models.BadData, "task %s: no law leads from %s to %s", id.Text(models.TaskPrefix), from, to)
		}
	}
	return nil
}
