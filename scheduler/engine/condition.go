package engine

import (
	"nightshift/models"
	"nightshift/scheduler/dag"
)

// Bounds of what one batch judges and of the compiled conditions that are kept.
const (
	judgedABatch   = 20
	keptConditions = 1_000
)

// needJudged asks for what the next conditions are judged by.
func (e *Engine) needJudged(n *models.Need) {
	for i, id := range e.freed.order {
		row, waits := e.freed.rows[id]
		if i >= e.portion() || len(n.Judged) >= judgedABatch {
			return
		}
		if waits && conditional(&row) {
			n.Judged = append(n.Judged, models.TaskRef{Env: row.Env, ID: row.ID})
		}
	}
}

// conditional says that a task set free runs only if its condition says so: one that ran before and waited for its children
// was judged then.
func conditional(row *models.Task) bool {
	return row.Has(models.HasCondition) && row.Killed == 0 && row.Attempt == 0
}

// judgeable says that a task set free can be decided in this batch.
func (e *Engine) judgeable(row *models.Task) bool {
	if !row.Has(models.HasCondition) || row.Killed > 0 || row.Attempt > 0 {
		return true
	}
	_, read := e.b.facts.Judged[models.TaskRef{Env: row.Env, ID: row.ID}]
	return read
}

// saysNo says why the condition of a task does not let it run; empty: it does, or there is none. One that cannot be judged
// lets nothing run.
func (e *Engine) saysNo(row *models.Task) string {
	if !row.Has(models.HasCondition) || row.Attempt > 0 { // it ran, and waited for its children
		return ""
	}
	facts := e.b.facts.Judged[models.TaskRef{Env: row.Env, ID: row.ID}]
	if facts.Large {
		return "run_if cannot be judged: the results are too large together"
	}
	condition, err := e.condition(facts.RunIf)
	if err != nil {
		return "run_if cannot be judged: " + err.Error()
	}
	scope := &dag.Scope{Payload: facts.Payload, Labels: facts.Labels, Deps: make([]dag.Dep, len(facts.Deps))}
	for i, d := range facts.Deps {
		scope.Deps[i] = dag.Dep{Key: d.Key, State: d.State.String(), Result: d.Result}
	}
	holds, err := condition.Holds(scope)
	switch {
	case err != nil:
		return "run_if cannot be judged: " + err.Error()
	case !holds:
		return "run_if says no"
	}
	return ""
}

// condition compiles a text once.
func (e *Engine) condition(text string) (*dag.Condition, error) {
	if c := e.conditions[text]; c != nil {
		return c, nil
	}
	c, err := dag.Compile(text)
	if err != nil {
		return nil, err
	}
	if len(e.conditions) >= keptConditions || e.conditions == nil {
		e.conditions = map[string]*dag.Condition{}
	}
	e.conditions[text] = c
	return c, nil
}
