package engine

import (
	"slices"

	"nightshift/models"
)

// variables are an environment's, as this batch left them.
func (e *Engine) variables(env int32) models.Variables {
	for _, v := range slices.Backward(e.b.plan.Schedules.Vars) {
		if v.Env == env {
			return v
		}
	}
	if v, ok := e.b.facts.Variables[env]; ok {
		return v
	}
	return models.Variables{Env: env, Version: models.FirstVariables}
}

// putVariables sets an environment's variables, all together.
func (e *Engine) putVariables(cmd *Command) (*Answer, error) {
	c := cmd.Configure
	row := *c.Variables
	if e.board.Envs[row.Env] == nil {
		return nil, models.Errorf(models.NotFound, "there is no such environment")
	}
	old := e.variables(row.Env)
	if err := fresh(c.Version, old.Version); err != nil {
		return nil, err
	}
	row.Version, row.At = old.Version+1, e.now
	saved := &e.b.plan.Schedules.Vars // one statement writes a row once
	*saved = append(slices.DeleteFunc(*saved, func(v models.Variables) bool { return v.Env == row.Env }), row)
	e.audit(cmd, row.Env, c.Action, "variables", c.Reason)
	return &Answer{Variables: &row}, nil
}

func needVariables(n *models.Need, c *Configure) {
	switch {
	case c.Variables != nil:
		n.Variables = append(n.Variables, c.Variables.Env)
	case c.Schedule != nil && len(c.Schedule.Rule.Vars) > 0:
		n.Variables = append(n.Variables, c.Schedule.Env)
	}
}
