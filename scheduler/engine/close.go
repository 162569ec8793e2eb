package engine

import (
	"nightshift/models"
)

// sealedFor is how long an environment takes nothing new while it is looked through before it is deleted. It is not written
// down: a deletion that a new brain finds half done begins again.
const sealedFor = 15_000_000 // µs

// openEnv says whether an environment is there and not deleted.
func (e *Engine) openEnv(env int32) bool {
	row := e.board.Envs[env]
	return row != nil && row.ClosedAt == 0
}

// closeEnvironment deletes an environment: first it is sealed, and then, when whoever asked has found no row that is left to
// do, closed. Nothing of it is erased.
func (e *Engine) closeEnvironment(cmd *Command) (*Answer, error) {
	c := cmd.Configure
	env := e.board.Envs[c.CloseEnvironment]
	switch {
	case env != nil && env.ClosedAt > 0 && cmd.Resent:
		known := *env
		return &Answer{Environment: &known}, nil
	case env == nil || env.ClosedAt > 0:
		return nil, models.Errorf(models.NotFound, "there is no such environment")
	}
	if err := fresh(c.Version, env.Version); err != nil {
		return nil, err
	}
	row := *env
	if c.Unseal {
		delete(e.seals, env.Env)
		return &Answer{Environment: &row}, nil
	}
	if err := e.mayClose(env); err != nil {
		return nil, err
	}
	if c.Seal {
		if e.seals == nil {
			e.seals = map[int32]models.Instant{}
		}
		e.seals[env.Env] = e.now + sealedFor
		return &Answer{Environment: &row}, nil
	}
	if e.seals[env.Env] <= e.now {
		err := models.Errorf(models.Unavailable, "the deletion was interrupted: ask again")
		err.RetryAfterSeconds = 1
		return nil, err
	}
	delete(e.seals, env.Env)
	before := environmentWords(env)
	row.ClosedAt, row.UpdatedAt, row.Version = e.now, e.now, row.Version+1
	e.board.PutEnv(row)
	e.b.plan.Environments = append(e.b.plan.Environments, row)
	e.auditChange(cmd, row.Env, row.ID.Text(models.EnvironmentPrefix), before, nil)
	return &Answer{Environment: &row}, nil
}

// mayClose refuses what the board knows to be in use; what waits outside it is found among the rows.
func (e *Engine) mayClose(env *models.Environment) error {
	others := 0
	for _, o := range e.board.Envs { // any order: a count
		if o.Tenant == env.Tenant && o.Env != env.Env && o.ClosedAt == 0 {
			others++
		}
	}
	switch {
	case others == 0:
		return models.Errorf(models.StateConflict, "%s is the only environment of its tenant", env.Name)
	case env.Name == "production":
		return models.Errorf(models.StateConflict, "production is where keys act that name no environment")
	}
	for _, lane := range e.board.LanesOf(env.Env) {
		if occupied(lane) {
			return models.Errorf(models.StateConflict, "the environment holds live work in the lane %s", lane.Name)
		}
	}
	for _, q := range e.queueStats(env.Env) {
		if q.Depth > 0 {
			return models.Errorf(models.StateConflict, "items wait in the queue %s", q.Name)
		}
	}
	for _, s := range e.plans.all { // any order: one is enough
		if s.Env == env.Env {
			return models.Errorf(models.StateConflict, "the environment has schedules: delete them first")
		}
	}
	return nil
}
