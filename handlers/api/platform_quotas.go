package api

import (
	"slices"

	"github.com/gofiber/fiber/v2"

	"nightshift/handlers"
	"nightshift/models"
	"nightshift/scheduler/engine"
)

func quotaRoutes() []handlers.Route {
	const tag = "Quotas and permissions"
	routes := []handlers.Route{
		endpoint(get, "/v1/quotas", reads, true, tag, "What the tenant may hold and do at most", getQuotas, nil, 200, Quotas{}),
		endpoint(fiber.MethodPut, "/v1/quotas", writes, true, tag, "Set all quotas of the tenant; null or left out: no limit", putQuotas, quotasRequest{}, 200, Quotas{}),
		endpoint(get, "/v1/permissions", reads, true, tag, "What tasks of the environment may ask for", getPermissions, nil, 200, Permissions{}),
		endpoint(fiber.MethodPut, "/v1/permissions", writes, true, tag, "Grant these permissions and no others", putPermissions, permissionsRequest{}, 200, Permissions{}),
	}
	return append(routes, typeRoutes()...)
}

// Quotas are a tenant's limits as the API shows them; null: no limit.
type Quotas struct {
	Weight             float64       `json:"weight"`
	MaxConcurrent      *int64        `json:"max_concurrent"`
	MaxQueued          *int64        `json:"max_queued"`
	MaxGPUs            *int64        `json:"max_gpus"`
	MaxVRAMMB          *int64        `json:"max_vram_mb"`
	TokensPerMinute    *int64        `json:"tokens_per_minute"`
	RequestsPerMinute  *int64        `json:"requests_per_minute"`
	MaxSchedules       *int64        `json:"max_schedules"`
	MinIntervalSeconds *int64        `json:"min_schedule_interval_seconds"`
	UpdatedAt          handlers.Time `json:"updated_at"`
	Version            int64         `json:"version"`
}

func showQuotas(q models.Quotas, weight float64) Quotas {
	return Quotas{
		weight, q.MaxConcurrent, q.MaxQueued, q.MaxGPUs, q.MaxVRAMMB, q.TokensPerMinute, q.RequestsPerMinute, q.MaxSchedules,
		q.MinIntervalSeconds, handlers.Time(q.UpdatedAt), q.Version,
	}
}

type quotasRequest struct {
	Weight             handlers.Opt[float64] `json:"weight" doc:"the platform's to set; left out: it stays"`
	MaxConcurrent      handlers.Opt[int64]   `json:"max_concurrent" doc:"tasks that run at once"`
	MaxQueued          handlers.Opt[int64]   `json:"max_queued" doc:"scheduled, pending, ready and retry_wait, of all environments"`
	MaxGPUs            handlers.Opt[int64]   `json:"max_gpus" doc:"cards that running tasks hold"`
	MaxVRAMMB          handlers.Opt[int64]   `json:"max_vram_mb" doc:"that running tasks asked of their cards"`
	TokensPerMinute    handlers.Opt[int64]   `json:"tokens_per_minute"`
	RequestsPerMinute  handlers.Opt[int64]   `json:"requests_per_minute" doc:"of the API at each replica, the worker protocol apart"`
	MaxSchedules       handlers.Opt[int64]   `json:"max_schedules"`
	MinIntervalSeconds handlers.Opt[int64]   `json:"min_schedule_interval_seconds"`
}

// mostQuota bounds every limit.
const mostQuota = 1_000_000_000_000

// into checks what was sent and writes it over the row: what is left out has no limit.
func (r *quotasRequest) into(q *models.Quotas) error {
	var k handlers.Check
	for _, f := range []struct {
		name  string
		sent  handlers.Opt[int64]
		row   **int64
		least int64
	}{
		{"max_concurrent", r.MaxConcurrent, &q.MaxConcurrent, 0},
		{"max_queued", r.MaxQueued, &q.MaxQueued, 0},
		{"max_gpus", r.MaxGPUs, &q.MaxGPUs, 0},
		{"max_vram_mb", r.MaxVRAMMB, &q.MaxVRAMMB, 0},
		{"tokens_per_minute", r.TokensPerMinute, &q.TokensPerMinute, 1},
		{"requests_per_minute", r.RequestsPerMinute, &q.RequestsPerMinute, 1},
		{"max_schedules", r.MaxSchedules, &q.MaxSchedules, 0},
		{"min_schedule_interval_seconds", r.MinIntervalSeconds, &q.MinIntervalSeconds, 1},
	} {
		*f.row = nil
		if f.sent.Given && !f.sent.Null {
			handlers.Range(&k, "body."+f.name, f.sent.Value, f.least, mostQuota)
			value := f.sent.Value
			*f.row = &value
		}
	}
	if r.Weight.Given && !r.Weight.Null {
		handlers.Range(&k, "body.weight", r.Weight.Value, 0.001, 10_000)
	}
	return k.Err()
}

func getQuotas(d *handlers.Deps, c *fiber.Ctx) error {
	caller := handlers.CallerOf(c)
	tenant, err := d.World.TenantByNumber(c.UserContext(), caller.Tenant)
	if err != nil {
		return err
	}
	q, err := d.World.Quotas(c.UserContext(), caller.Tenant)
	if err != nil {
		return err
	}
	handlers.SetETag(c, q.Version)
	return handlers.Answer(c, fiber.StatusOK, showQuotas(q, tenant.Weight))
}

func putQuotas(d *handlers.Deps, c *fiber.Ctx) error {
	var ask quotasRequest
	if err := handlers.Bind(c, &ask); err != nil {
		return err
	}
	caller := handlers.CallerOf(c)
	set := &engine.SetQuotas{}
	if ask.Weight.Given && !ask.Weight.Null {
		tenant, err := d.World.TenantByNumber(c.UserContext(), caller.Tenant)
		if err != nil {
			return err
		}
		if tenant.Weight != ask.Weight.Value && !caller.Holds(handlers.Platform) {
			return models.Errorf(models.Forbidden, "the weight is the platform's to set")
		}
		set.Weight = &ask.Weight.Value
	}
	read := func() (models.Quotas, int64, error) {
		q, err := d.World.Quotas(c.UserContext(), caller.Tenant)
		return q, q.Version, err
	}
	answer, err := edit(d, c, read, func(q *models.Quotas) (*engine.Configure, error) {
		err := ask.into(q)
		set.Quotas = *q
		return &engine.Configure{Quotas: set, Action: "quotas.edit"}, err
	})
	if err != nil {
		return err
	}
	handlers.SetETag(c, answer.Quotas.Version)
	return handlers.Answer(c, fiber.StatusOK, showQuotas(*answer.Quotas, answer.Tenant.Weight))
}

// Permissions are what tasks of an environment may ask for.
type Permissions struct {
	Environment string        `json:"environment"`
	Granted     []string      `json:"granted"`
	UpdatedAt   handlers.Time `json:"updated_at"`
	Version     int64         `json:"version"`
}

func showPermissions(g models.Grants, environment string) Permissions {
	return Permissions{environment, handlers.List(g.Granted), handlers.Time(g.UpdatedAt), g.Version}
}

type permissionsRequest struct {
	Granted []string `json:"granted" required:"true"`
}

// mostGranted is how many permissions an environment may grant.
const mostGranted = 500

func getPermissions(d *handlers.Deps, c *fiber.Ctx) error {
	caller := handlers.CallerOf(c)
	g, err := d.World.Grants(c.UserContext(), caller.Scope(), caller.Env)
	if err != nil {
		return err
	}
	handlers.SetETag(c, g.Version)
	return handlers.Answer(c, fiber.StatusOK, showPermissions(g, caller.Environment))
}

func putPermissions(d *handlers.Deps, c *fiber.Ctx) error {
	var ask permissionsRequest
	if err := handlers.Bind(c, &ask); err != nil {
		return err
	}
	var k handlers.Check
	k.That(ask.Granted != nil, "body.granted", "it is needed: a list, empty for none")
	k.That(len(ask.Granted) <= mostGranted, "body.granted", "at most %d permissions", mostGranted)
	for i, name := range ask.Granted {
		k.Name("body.granted["+itoa(i)+"]", name)
	}
	if err := k.Err(); err != nil {
		return err
	}
	caller := handlers.CallerOf(c)
	read := func() (models.Grants, int64, error) {
		g, err := d.World.Grants(c.UserContext(), caller.Scope(), caller.Env)
		return g, g.Version, err
	}
	answer, err := edit(d, c, read, func(g *models.Grants) (*engine.Configure, error) {
		g.Granted = slices.Clone(ask.Granted)
		return &engine.Configure{Grants: g, Action: "permissions.edit"}, nil
	})
	if err != nil {
		return err
	}
	handlers.SetETag(c, answer.Grants.Version)
	return handlers.Answer(c, fiber.StatusOK, showPermissions(*answer.Grants, caller.Environment))
}
