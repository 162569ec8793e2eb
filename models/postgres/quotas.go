package postgres

import (
	"nightshift/models"
)

// limits sends what a batch changes of limits.
func limits(pipe *pipeline, p *models.QuotaPlan) error {
	for _, rare := range []struct {
		name  string
		n     int
		value any
	}{
		{"save_quotas", len(p.Quotas), p.Quotas},
		{"save_permissions", len(p.Grants), p.Grants},
		{"save_task_types", len(p.Types), p.Types},
		{"save_token_levels", len(p.Levels), p.Levels},
	} {
		if rare.n > 0 {
			if err := sendJSON(pipe, rare.name, rare.value); err != nil {
				return err
			}
		}
	}
	return nil
}

// maybe8 reads a number that may be none.
func (c *columns) maybe8() *int64 {
	if c.values[c.next] == nil {
		c.next++
		return nil
	}
	v := c.int8()
	return &v
}

// loadLimits reads what a board knows of limits.
func loadLimits(out *models.QuotaSnapshot) []call {
	return []call{
		{name: "load_quotas", read: func(c *columns) {
			out.Quotas = append(out.Quotas, models.Quotas{
				Tenant: c.int4(), MaxConcurrent: c.maybe8(), MaxQueued: c.maybe8(), MaxGPUs: c.maybe8(), MaxVRAMMB: c.maybe8(),
				TokensPerMinute: c.maybe8(), RequestsPerMinute: c.maybe8(), MaxSchedules: c.maybe8(), MinIntervalSeconds: c.maybe8(),
				UpdatedAt: c.instant(), Version: c.int8(),
			})
		}},
		{name: "load_permissions", read: func(c *columns) {
			out.Grants = append(out.Grants, models.Grants{Env: c.int4(), Granted: c.texts(), UpdatedAt: c.instant(), Version: c.int8()})
		}},
		{name: "load_task_types", read: func(c *columns) {
			out.Types = append(out.Types, models.TaskType{
				Env: c.int4(), Type: c.text(), Schema: c.int8(), MaxConcurrent: c.maybe8(), Paused: c.bool(), Reason: c.text(),
				UpdatedAt: c.instant(), Version: c.int8(),
			})
		}},
		{name: "load_token_levels", read: func(c *columns) {
			out.Levels = append(out.Levels, models.TokenLevel{Tenant: c.int4(), Credit: c.int8(), At: c.instant()})
		}},
		{name: "load_queued", read: func(c *columns) {
			out.Queued = append(out.Queued, models.QueuedCount{Env: c.int4(), Count: c.int8()})
		}},
	}
}

// blockersOf reads whom tasks wait for.
func blockersOf(refs []models.TaskRef, f *models.Facts) []call {
	if len(refs) == 0 {
		return nil
	}
	return []call{{name: "fact_blockers", read: func(c *columns) {
		ref := models.TaskRef{Env: c.int4(), ID: c.id()}
		f.Blockers[ref] = append(f.Blockers[ref], models.Blocker{Task: c.id(), Key: c.text(), State: models.State(c.int2())})
	}, params: [][]byte{
		int4Array(refs, func(r models.TaskRef) int32 { return r.Env }), idArray(refs, func(r models.TaskRef) models.ID { return r.ID }),
		int8Param(models.MostBlockers),
	}}}
}
