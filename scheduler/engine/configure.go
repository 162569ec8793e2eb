package engine

import (
	"nightshift/models"
	"nightshift/scheduler/board"
)

// configure writes what decisions read, so that nothing starts after an acknowledged pause.
func (e *Engine) configure(cmd *Command) (*Answer, error) {
	c := cmd.Configure
	if answer, err := e.replay(c.Once); answer != nil || err != nil {
		return answer, err
	}
	switch {
	case c.Dry && c.New && c.Schedule != nil:
		return e.rehearseSchedule(*c.Schedule)
	case c.Dry && c.Budget == nil:
		return &Answer{}, e.wouldMake(c)
	}
	e.dirty = true
	switch {
	case c.Tenant != nil:
		return e.putTenant(cmd)
	case c.Environment != nil:
		return e.putEnvironment(cmd)
	case c.CloseEnvironment != 0:
		return e.closeEnvironment(cmd)
	case c.Kind != nil:
		return e.putKind(cmd)
	case c.Lane != nil:
		return e.putLane(cmd)
	case c.DeleteLane != nil:
		return e.deleteLane(cmd)
	case c.Schedule != nil:
		return e.putSchedule(cmd)
	case c.DeleteSchedule != nil:
		return e.deleteSchedule(cmd)
	case c.SwitchSchedule != nil:
		return e.switchSchedule(cmd)
	case c.Quotas != nil:
		return e.putQuotas(cmd)
	case c.Grants != nil:
		return e.putGrants(cmd)
	case c.TaskType != nil:
		return e.putType(cmd)
	case c.Rate != nil:
		return e.putRate(cmd)
	case c.DeleteRate != nil:
		return e.deleteRate(cmd)
	case c.Budget != nil:
		return e.putBudget(cmd)
	case c.DeleteBudget != nil:
		return e.deleteBudget(cmd)
	case c.Model != nil:
		return e.putModel(cmd)
	case c.DeleteModel != nil:
		return e.deleteModel(cmd)
	case c.Variables != nil:
		return e.putVariables(cmd)
	}
	return nil, models.Errorf(models.InvalidRequest, "the command configures nothing")
}

// wouldMake refuses what the same call without Dry would be refused for.
func (e *Engine) wouldMake(c *Configure) error {
	switch {
	case !c.New:
	case c.Tenant != nil:
		return e.mayHaveSlug(c.Tenant)
	case c.Environment != nil:
		return e.mayHaveName(c.Environment)
	case c.Lane != nil:
		return e.mayMakeLane(c.Lane)
	}
	return models.Errorf(models.InvalidRequest, "the command tries nothing")
}

func fresh(sent, stands int64) error {
	if sent > 0 && sent != stands {
		return models.Errorf(models.Stale, "it was changed meanwhile: version %d stands, not %d", stands, sent)
	}
	return nil
}

func (e *Engine) putTenant(cmd *Command) (*Answer, error) {
	c := cmd.Configure
	row := *c.Tenant
	if err := e.mayHaveSlug(&row); err != nil {
		return nil, err
	}
	for _, t := range e.board.Tenants { // any order: at most one matches
		if c.New && t.ID == row.ID { // the same call, sent again
			known := *t
			return &Answer{Tenant: &known, Made: []models.ID{row.ID}}, nil
		}
	}
	row.UpdatedAt = e.now
	var before any
	if !c.New {
		old := e.board.Tenants[row.Number]
		if old == nil {
			return nil, models.Errorf(models.NotFound, "there is no such tenant")
		}
		before = tenantWords(old)
		if err := fresh(c.Version, old.Version); err != nil {
			return nil, err
		}
		row.ID, row.CreatedAt, row.Version = old.ID, old.CreatedAt, old.Version+1
	} else {
		e.numbers.tenant++
		row.Number, row.CreatedAt, row.Version = e.numbers.tenant, e.now, 1
	}
	e.board.PutTenant(row)
	e.reappoint(func(env int32) bool { return e.board.TenantOf(env) == row.Number })
	e.b.plan.Tenants = append(e.b.plan.Tenants, row)
	if c.New {
		e.makeEnvironment(models.Environment{ID: e.newID(), Tenant: row.Number, Name: "production", Kind: "production"})
		e.recordOnce(c.Once, []models.ID{row.ID})
	}
	e.auditChange(cmd, 0, row.ID.Text(models.TenantPrefix), before, tenantWords(&row))
	return &Answer{Tenant: &row, Made: []models.ID{row.ID}}, nil
}

// mayHaveSlug refuses a tenant whose slug is another's.
func (e *Engine) mayHaveSlug(row *models.Tenant) error {
	for _, t := range e.board.Tenants { // any order: at most one matches
		if t.Slug == row.Slug && t.ID != row.ID {
			return models.Errorf(models.StateConflict, "the slug %q is taken", row.Slug)
		}
	}
	return nil
}

// makeEnvironment adds an environment with one lane a kind.
func (e *Engine) makeEnvironment(row models.Environment) models.Environment {
	e.numbers.env++
	row.Env, row.CreatedAt, row.UpdatedAt, row.Version = e.numbers.env, e.now, e.now, 1
	e.board.PutEnv(row)
	e.b.plan.Environments = append(e.b.plan.Environments, row)
	for _, kind := range models.Kinds() {
		e.makeLane(models.Lane{Env: row.Env, Name: kind.String(), Kind: kind, Weight: 1, HighWater: 1000, First: true})
	}
	return row
}

func (e *Engine) makeLane(row models.Lane) models.Lane {
	e.numbers.lane++
	row.Number, row.CreatedAt, row.UpdatedAt, row.Version = e.numbers.lane, e.now, e.now, 1
	e.board.PutLane(row)
	e.keepHours()
	e.b.plan.Lanes = append(e.b.plan.Lanes, row)
	return row
}

func (e *Engine) putEnvironment(cmd *Command) (*Answer, error) {
	c := cmd.Configure
	row := *c.Environment
	for _, env := range e.board.Envs { // any order: at most one matches
		if c.New && env.ID == row.ID { // the same call, sent again
			known := *env
			return &Answer{Environment: &known, Made: []models.ID{row.ID}}, nil
		}
	}
	if err := e.mayHaveName(&row); err != nil {
		return nil, err
	}
	var before any
	if c.New {
		row = e.makeEnvironment(row)
		e.recordOnce(c.Once, []models.ID{row.ID})
	} else {
		old := e.board.Envs[row.Env]
		if old == nil || old.ClosedAt > 0 {
			return nil, models.Errorf(models.NotFound, "there is no such environment")
		}
		if err := fresh(c.Version, old.Version); err != nil {
			return nil, err
		}
		before = environmentWords(old)
		row.ID, row.Tenant, row.CreatedAt, row.UpdatedAt, row.Version = old.ID, old.Tenant, old.CreatedAt, e.now, old.Version+1
		e.board.PutEnv(row)
		e.reappoint(func(env int32) bool { return env == row.Env })
		e.b.plan.Environments = append(e.b.plan.Environments, row)
	}
	e.auditChange(cmd, row.Env, row.ID.Text(models.EnvironmentPrefix), before, environmentWords(&row))
	return &Answer{Environment: &row, Made: []models.ID{row.ID}}, nil
}

// mayHaveName refuses an environment whose name is another's of its tenant.
func (e *Engine) mayHaveName(row *models.Environment) error {
	if e.board.Tenants[row.Tenant] == nil {
		return models.Errorf(models.NotFound, "there is no such tenant")
	}
	for _, env := range e.board.Envs { // any order: at most one matches
		if env.Tenant == row.Tenant && env.Name == row.Name && env.Env != row.Env && env.ClosedAt == 0 {
			return models.Errorf(models.StateConflict, "there is an environment %q already", row.Name)
		}
	}
	return nil
}

func (e *Engine) putKind(cmd *Command) (*Answer, error) {
	c := cmd.Configure
	row := *c.Kind
	old := e.board.Kinds[row.Name]
	if err := fresh(c.Version, old.Version); err != nil {
		return nil, err
	}
	if err := e.checkKindYields(&row); err != nil {
		return nil, err
	}
	row.UpdatedAt, row.Version = e.now, old.Version+1
	e.board.PutKind(row)
	e.b.plan.Kinds = append(e.b.plan.Kinds, row)
	e.auditChange(cmd, 0, row.Name.String(), kindWords(&old), kindWords(&row))
	return &Answer{Kind: &row}, nil
}

func (e *Engine) putLane(cmd *Command) (*Answer, error) {
	c := cmd.Configure
	row := *c.Lane
	old := e.board.LaneNamed(row.Env, row.Name)
	var before any
	if c.New {
		if old != nil && cmd.Resent {
			known := old.Lane
			return &Answer{Lane: &known}, nil
		}
		if err := e.mayMakeLane(&row); err != nil {
			return nil, err
		}
		if err := e.checkLaneYields(&row); err != nil {
			return nil, err
		}
		row = e.makeLane(row)
		e.recordOnce(c.Once, nil)
	} else {
		if old == nil {
			return nil, models.Errorf(models.NotFound, "there is no lane %q", row.Name)
		}
		if err := fresh(c.Version, old.Version); err != nil {
			return nil, err
		}
		if row.Kind != old.Kind && (old.Depth > 0 || old.Running > 0 || old.Parked > 0) {
			return nil, models.Errorf(models.StateConflict, "the lane %s holds tasks: its kind can change only while it is empty", row.Name)
		}
		if err := e.checkLaneYields(&row); err != nil {
			return nil, err
		}
		paused := old.Paused
		before = laneWords(&old.Lane)
		row.Number, row.First, row.CreatedAt, row.UpdatedAt, row.Version = old.Number, old.First, old.CreatedAt, e.now, old.Version+1
		e.board.PutLane(row)
		e.keepHours()
		e.b.plan.Lanes = append(e.b.plan.Lanes, row)
		if paused != row.Paused {
			name := "lane.resumed"
			if row.Paused {
				name = "lane.paused"
			}
			e.b.plan.Events = append(e.b.plan.Events, models.Event{Env: row.Env, Name: name, At: e.now, Lane: row.Name, Reason: c.Reason})
		}
	}
	e.auditChange(cmd, row.Env, row.Name, before, laneWords(&row))
	return &Answer{Lane: &row}, nil
}

// mayMakeLane refuses a lane whose name another of its environment has.
func (e *Engine) mayMakeLane(row *models.Lane) error {
	switch {
	case !e.openEnv(row.Env):
		return models.Errorf(models.NotFound, "there is no such environment")
	case e.board.LaneNamed(row.Env, row.Name) != nil:
		return models.Errorf(models.StateConflict, "there is a lane %q already", row.Name)
	}
	return nil
}

func (e *Engine) deleteLane(cmd *Command) (*Answer, error) {
	c := cmd.Configure
	lane := e.board.LaneNamed(c.DeleteLane.Env, c.DeleteLane.Name)
	switch {
	case lane == nil:
		return nil, models.Errorf(models.NotFound, "there is no lane %q", c.DeleteLane.Name)
	case lane.First:
		return nil, models.Errorf(models.StateConflict, "%s is one of the four lanes every environment has", lane.Name)
	case occupied(lane):
		return nil, models.Errorf(models.StateConflict, "the lane %s holds tasks: drain it first", lane.Name)
	case e.yieldedTo(lane) != "":
		return nil, models.Errorf(models.StateConflict, "the lane %s yields to %s: take the name out of its yields_to first", e.yieldedTo(lane), lane.Name)
	}
	if err := fresh(c.Version, lane.Version); err != nil {
		return nil, err
	}
	row := lane.Lane
	e.board.DropLane(lane.Number)
	e.b.plan.LanesGone = append(e.b.plan.LanesGone, lane.Number)
	e.auditChange(cmd, row.Env, row.Name, laneWords(&row), nil)
	return &Answer{Lane: &row}, nil
}

func occupied(l *board.Lane) bool { return l.Depth > 0 || l.Running > 0 || l.Parked > 0 }
