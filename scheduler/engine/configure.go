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
	e.dirty = true
	switch {
	case c.Tenant != nil:
		return e.putTenant(cmd)
	case c.Environment != nil:
		return e.putEnvironment(cmd)
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
	}
	return nil, models.Errorf(models.InvalidRequest, "the command configures nothing")
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
	for _, t := range e.board.Tenants { // any order: at most one matches
		if t.Slug == row.Slug && t.ID != row.ID {
			return nil, models.Errorf(models.StateConflict, "the slug %q is taken", row.Slug)
		}
		if c.New && t.ID == row.ID { // the same call, sent again
			known := *t
			return &Answer{Tenant: &known, Made: []models.ID{row.ID}}, nil
		}
	}
	row.UpdatedAt = e.now
	if !c.New {
		old := e.board.Tenants[row.Number]
		if old == nil {
			return nil, models.Errorf(models.NotFound, "there is no such tenant")
		}
		if err := fresh(c.Version, old.Version); err != nil {
			return nil, err
		}
		row.ID, row.CreatedAt, row.Version = old.ID, old.CreatedAt, old.Version+1
	} else {
		e.numbers.tenant++
		row.Number, row.CreatedAt, row.Version = e.numbers.tenant, e.now, 1
	}
	e.board.PutTenant(row)
	e.b.plan.Tenants = append(e.b.plan.Tenants, row)
	if c.New {
		e.makeEnvironment(models.Environment{ID: e.newID(), Tenant: row.Number, Name: "production", Kind: "production"})
		e.recordOnce(c.Once, []models.ID{row.ID})
	}
	e.audit(cmd, 0, c.Action, row.ID.Text(models.TenantPrefix), c.Reason)
	return &Answer{Tenant: &row, Made: []models.ID{row.ID}}, nil
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
		if env.Tenant == row.Tenant && env.Name == row.Name && env.Env != row.Env {
			return nil, models.Errorf(models.StateConflict, "there is an environment %q already", row.Name)
		}
	}
	if c.New {
		if e.board.Tenants[row.Tenant] == nil {
			return nil, models.Errorf(models.NotFound, "there is no such tenant")
		}
		row = e.makeEnvironment(row)
		e.recordOnce(c.Once, []models.ID{row.ID})
	} else {
		old := e.board.Envs[row.Env]
		if old == nil {
			return nil, models.Errorf(models.NotFound, "there is no such environment")
		}
		if err := fresh(c.Version, old.Version); err != nil {
			return nil, err
		}
		row.ID, row.Tenant, row.CreatedAt, row.UpdatedAt, row.Version = old.ID, old.Tenant, old.CreatedAt, e.now, old.Version+1
		e.board.PutEnv(row)
		e.b.plan.Environments = append(e.b.plan.Environments, row)
	}
	e.audit(cmd, row.Env, c.Action, row.ID.Text(models.EnvironmentPrefix), c.Reason)
	return &Answer{Environment: &row, Made: []models.ID{row.ID}}, nil
}

func (e *Engine) putKind(cmd *Command) (*Answer, error) {
	c := cmd.Configure
	row := *c.Kind
	old := e.board.Kinds[row.Name]
	if err := fresh(c.Version, old.Version); err != nil {
		return nil, err
	}
	row.UpdatedAt, row.Version = e.now, old.Version+1
	e.board.Kinds[row.Name] = row
	e.b.plan.Kinds = append(e.b.plan.Kinds, row)
	e.audit(cmd, 0, c.Action, row.Name.String(), c.Reason)
	return &Answer{Kind: &row}, nil
}

func (e *Engine) putLane(cmd *Command) (*Answer, error) {
	c := cmd.Configure
	row := *c.Lane
	old := e.board.LaneNamed(row.Env, row.Name)
	if c.New {
		switch {
		case e.board.Envs[row.Env] == nil:
			return nil, models.Errorf(models.NotFound, "there is no such environment")
		case old != nil && cmd.Resent:
			known := old.Lane
			return &Answer{Lane: &known}, nil
		case old != nil:
			return nil, models.Errorf(models.StateConflict, "there is a lane %q already", row.Name)
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
		paused := old.Paused
		row.Number, row.First, row.CreatedAt, row.UpdatedAt, row.Version = old.Number, old.First, old.CreatedAt, e.now, old.Version+1
		e.board.PutLane(row)
		e.b.plan.Lanes = append(e.b.plan.Lanes, row)
		if paused != row.Paused {
			name := "lane.resumed"
			if row.Paused {
				name = "lane.paused"
			}
			e.b.plan.Events = append(e.b.plan.Events, models.Event{Env: row.Env, Name: name, At: e.now, Lane: row.Name, Reason: c.Reason})
		}
	}
	e.audit(cmd, row.Env, c.Action, row.Name, c.Reason)
	return &Answer{Lane: &row}, nil
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
	}
	if err := fresh(c.Version, lane.Version); err != nil {
		return nil, err
	}
	row := lane.Lane
	e.board.DropLane(lane.Number)
	e.b.plan.LanesGone = append(e.b.plan.LanesGone, lane.Number)
	e.audit(cmd, row.Env, c.Action, row.Name, c.Reason)
	return &Answer{Lane: &row}, nil
}

func occupied(l *board.Lane) bool { return l.Depth > 0 || l.Running > 0 || l.Parked > 0 }
