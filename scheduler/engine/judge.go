package engine

import (
	"slices"

	"nightshift/models"
)

// Judge says how good a task's result was, after the fact.
type Judge struct {
	Env    int32     `json:"env"`
	Task   models.ID `json:"task"`
	Score  float64   `json:"score"`
	Source string    `json:"source"`
}

// judge keeps the last word of a source on a task that has run.
func (e *Engine) judge(cmd *Command) (*Answer, error) {
	x := cmd.Judge
	row := e.peek(models.TaskRef{Env: x.Env, ID: x.Task})
	switch {
	case row == nil || row.State == models.Staged:
		return nil, models.Errorf(models.NotFound, "there is no task %s", x.Task.Text(models.TaskPrefix))
	case row.Attempt == 0:
		return nil, models.Errorf(models.StateConflict, "the task has not run: there is nothing to judge")
	}
	q := models.Quality{Env: x.Env, Task: x.Task, Source: x.Source, Score: x.Score, At: e.now}
	var before *float64
	if known, ok := e.b.facts.Qualities[models.QualityRef{Env: q.Env, Task: q.Task, Source: q.Source}]; ok {
		before = &known
	}
	for i := range e.b.plan.Qualities {
		if o := &e.b.plan.Qualities[i]; o.Env == q.Env && o.Task == q.Task && o.Source == q.Source {
			before = &o.Score
		}
	}
	if class := e.board.Classes[row.Class]; class != nil {
		e.judged(e.board.TenantOf(row.Env), class.Type, class.Model, q.Score, before)
	}
	e.b.plan.Qualities = slices.DeleteFunc(e.b.plan.Qualities, func(o models.Quality) bool {
		return o.Env == q.Env && o.Task == q.Task && o.Source == q.Source
	})
	e.b.plan.Qualities = append(e.b.plan.Qualities, q)
	copied := *row
	return &Answer{Task: &copied}, nil
}
