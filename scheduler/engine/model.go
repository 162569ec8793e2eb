package engine

import (
	"nightshift/models"
	"nightshift/scheduler/board"
)

// MostModels is how many models a tenant, or the platform, may have.
const MostModels = 500

// putModel adds a model or replaces it. Who waited for another choice gets one.
func (e *Engine) putModel(cmd *Command) (*Answer, error) {
	c := cmd.Configure
	row := c.Model.Whole()
	if row.Tenant != 0 && e.board.Tenants[row.Tenant] == nil {
		return nil, models.Errorf(models.NotFound, "there is no such tenant")
	}
	row.CreatedAt, row.UpdatedAt, row.Version = e.now, e.now, 1
	var before any
	old := e.board.ModelAt(row.Ref())
	if c.Over > 0 {
		if seen := e.board.ModelNamed(row.Tenant, row.Name); old != nil || seen == nil || seen.Version != c.Over {
			return nil, models.Errorf(models.Stale, "the platform's model %q of version %d is not what you see any more", row.Name, c.Over)
		}
	}
	if old != nil {
		if err := fresh(c.Version, old.Version); err != nil {
			return nil, err
		}
		before = old.Model
		row.CreatedAt, row.Version = old.CreatedAt, old.Version+1
	} else {
		switch {
		case c.Version > 0:
			return nil, models.Errorf(models.Stale, "there is no model %q of your own any more", row.Name)
		case e.board.ModelEntries(row.Tenant) >= MostModels:
			return nil, models.Errorf(models.StateConflict, "there are %d models, and no more are kept", MostModels)
		}
	}
	e.board.PutModel(row, e.now)
	e.board.Priced(row.Name)
	e.board.LookLower()
	e.b.options = nil
	replace(&e.b.plan.Models.Models, row, func(m models.Model) bool { return m.Ref() == row.Ref() })
	e.auditChange(cmd, 0, row.Name, before, row)
	return &Answer{Model: &row}, nil
}

// deleteModel removes a model. What had chosen it gets another; what asked for it by name waits, or sees the platform's.
func (e *Engine) deleteModel(cmd *Command) (*Answer, error) {
	c := cmd.Configure
	ref := *c.DeleteModel
	old := e.board.ModelAt(ref)
	if old == nil {
		return nil, models.Errorf(models.NotFound, "there is no model %q", ref.Name)
	}
	if err := fresh(c.Version, old.Version); err != nil {
		return nil, err
	}
	row := old.Model
	e.board.DropModel(ref)
	e.board.Priced(ref.Name)
	e.b.options = nil
	p := &e.b.plan.Models
	written := p.Models[:0]
	for _, m := range p.Models {
		if m.Ref() != ref {
			written = append(written, m)
		}
	}
	p.Models = written
	p.Gone = append(p.Gone, ref)
	e.auditChange(cmd, 0, ref.Name, row, nil)
	return &Answer{Model: &row}, nil
}

// ModelStats is what the brain knows of a model that a tenant sees.
type ModelStats struct {
	Name     string         `json:"name"`
	Platform bool           `json:"platform,omitempty"`
	Running  int64          `json:"running"` // of the tenant
	All      int64          `json:"all"`     // that count towards its limit
	Breaker  string         `json:"breaker"` // closed, open, half_open
	Until    models.Instant `json:"until,omitempty"`
	Class    string         `json:"class,omitempty"`
	Factor   float64        `json:"factor"` // of its price now
	Loaded   bool           `json:"loaded"` // on a worker, or it needs none
	Seen     []ModelQuality `json:"seen,omitempty"`
}

// ModelQuality is how good a model is at the tasks of a type, and what they used of it.
type ModelQuality struct {
	Type    string  `json:"type"`
	Judged  float64 `json:"judged"`
	Mean    float64 `json:"mean"`
	Low     float64 `json:"low"`
	Runs    float64 `json:"runs"`
	Seconds float64 `json:"seconds"`
	Tokens  float64 `json:"tokens"`
}

// lookModels are the live figures of the models that a tenant sees.
func (e *Engine) lookModels(tenant int32) []ModelStats {
	out := []ModelStats{}
	for _, m := range e.board.ModelsOf(tenant) {
		s := ModelStats{
			Name: m.Name, Platform: m.Tenant == 0, Breaker: "closed", Factor: m.OffPeak(e.now), Loaded: !m.Local() || e.board.Loaded(tenant, m.Name),
		}
		if tenant == m.Tenant {
			s.All = m.Running // what others run is nobody else's business
		}
		if u := e.board.UseOfModel(tenant, m.Name); u != nil {
			s.Running, s.Breaker = u.Live, u.Breaker.State(e.now)
			if u.Breaker.Opened > 0 {
				s.Until, s.Class = u.Breaker.Until, u.Breaker.Class
			}
		}
		for _, seen := range e.taught.About(tenant, m.Name) {
			q := ModelQuality{Type: seen.Type, Judged: seen.Judged, Runs: seen.Runs, Low: e.taught.Low(tenant, seen.Type, &m.Model)}
			if seen.Judged > 0 {
				q.Mean = seen.Good / seen.Judged
			}
			if seen.Runs > 0 {
				q.Seconds, q.Tokens = seen.Seconds/seen.Runs, (seen.In+seen.Out)/seen.Runs
			}
			s.Seen = append(s.Seen, q)
		}
		out = append(out, s)
	}
	return out
}

// entryOf is the model of a class as its tenant sees it, nil when it names none or nothing is known of it.
func (e *Engine) entryOf(tenant int32, class *models.Class) *board.ModelEntry {
	if class == nil || class.Model == "" {
		return nil
	}
	return e.board.ModelNamed(tenant, class.Model)
}
