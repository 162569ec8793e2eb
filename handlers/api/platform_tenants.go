package api

import (
	"strings"
	"time"
	_ "time/tzdata" // zones are checked alike wherever the binary runs

	"github.com/gofiber/fiber/v2"

	"nightshift/handlers"
	"nightshift/models"
	"nightshift/models/postgres"
	"nightshift/scheduler/engine"
)

// Tenant is a customer as the API shows it.
type Tenant struct {
	ID        handlers.TypedID `json:"id"`
	Name      string           `json:"name"`
	Slug      string           `json:"slug"`
	Weight    float64          `json:"weight"`
	Timezone  string           `json:"timezone"`
	Cell      int              `json:"cell"`
	Suspended bool             `json:"suspended"`
	CreatedAt handlers.Time    `json:"created_at"`
	UpdatedAt handlers.Time    `json:"updated_at"`
	Version   int64            `json:"version"`
}

func showTenant(t models.Tenant) Tenant {
	return Tenant{
		handlers.TypedID{Prefix: models.TenantPrefix, ID: t.ID},
		t.Name, t.Slug, t.Weight, t.Timezone, 1, t.Suspended,
		handlers.Time(t.CreatedAt), handlers.Time(t.UpdatedAt), t.Version,
	}
}

type newTenant struct {
	Name     string                `json:"name" required:"true" maxLength:"200"`
	Slug     string                `json:"slug" required:"true" maxLength:"128"`
	Weight   handlers.Opt[float64] `json:"weight" doc:"its share among those that want some; 1 when left out"`
	Timezone handlers.Opt[string]  `json:"timezone" doc:"IANA; UTC when left out"`
	Cell     handlers.Opt[int]     `json:"cell" doc:"1, the only one yet"`
}

type tenantPatch struct {
	Name     handlers.Opt[string]  `json:"name"`
	Weight   handlers.Opt[float64] `json:"weight"`
	Timezone handlers.Opt[string]  `json:"timezone"`
}

func checkTenant(t *models.Tenant) error {
	var k handlers.Check
	k.Text("body.name", t.Name, 1, 200)
	if k.Name("body.slug", t.Slug) {
		k.That(!strings.HasPrefix(t.Slug, models.TenantPrefix+"_"), "body.slug", "a slug does not begin like an id")
	}
	handlers.Range(&k, "body.weight", t.Weight, 0.001, 10_000)
	zone, err := time.LoadLocation(t.Timezone)
	k.That(err == nil && zone != time.Local && t.Timezone != "", "body.timezone", "%q is no zone like Europe/Berlin", handlers.Shorten(t.Timezone, 60))
	return k.Err()
}

func createTenant(d *handlers.Deps, c *fiber.Ctx) error {
	var ask newTenant
	dry, err := handlers.DryRun(c)
	if err != nil {
		return err
	}
	if err := handlers.Bind(c, &ask); err != nil {
		return err
	}
	if ask.Cell.Or(1) != 1 {
		return models.Invalid("body.cell", "there is one cell yet: 1")
	}
	row := models.Tenant{ID: d.Mint(), Name: ask.Name, Slug: ask.Slug, Weight: ask.Weight.Or(1), Timezone: ask.Timezone.Or("UTC")}
	if err := checkTenant(&row); err != nil {
		return err
	}
	if dry {
		refusals, err := wouldConfigure(d, c, &engine.Configure{Tenant: &row})
		if err != nil {
			return err
		}
		row.ID, row.Version = models.ID{}, 1
		return handlers.Answer(c, fiber.StatusOK, tenantDry{showTenant(row), refusals})
	}
	return handlers.Create(d, c, func(once *engine.Once) (*handlers.Made, error) {
		answer, err := configure(d, c, &engine.Configure{Tenant: &row, New: true, Once: once, Action: "tenant.create"})
		if err != nil {
			return nil, err
		}
		if answer.Replay {
			return &handlers.Made{Replay: true, Again: func() (*handlers.Made, error) {
				known, err := d.World.Tenant(c.UserContext(), answer.Made[0].Text(models.TenantPrefix))
				return madeTenant(known), err
			}}, nil
		}
		return madeTenant(*answer.Tenant), nil
	})
}

func madeTenant(t models.Tenant) *handlers.Made {
	return &handlers.Made{Status: fiber.StatusCreated, Location: "/v1/tenants/" + t.ID.Text(models.TenantPrefix), Body: showTenant(t)}
}

func listTenants(d *handlers.Deps, c *fiber.Ctx) error {
	q, rows, err := rowList(d, c)
	if err != nil {
		return err
	}
	tenants, total, err := d.World.Tenants(c.UserContext(), rows)
	if err != nil {
		return err
	}
	return answerRows(c, q, tenants, total, showTenant, func(t models.Tenant) int64 { return int64(t.Number) })
}

// rowList reads a list's query whose rows are ordered by their number.
func rowList(d *handlers.Deps, c *fiber.Ctx, filters ...string) (*handlers.ListQuery, postgres.RowList, error) {
	q, err := handlers.ReadList(d, c, filters...)
	if err != nil {
		return nil, postgres.RowList{}, err
	}
	rows := postgres.RowList{Desc: q.Desc, Limit: q.Limit + 1}
	_, err = q.After(&rows.After)
	return q, rows, err
}

func answerRows[R, T any](c *fiber.Ctx, q *handlers.ListQuery, rows []R, total int64, show func(R) T, number func(R) int64) error {
	page, err := handlers.PageOf(q, rows, show, func(r R) any { return number(r) })
	if err != nil {
		return err
	}
	if q.Count {
		page.Total = &handlers.Total{Value: total, Relation: "eq"}
	}
	return handlers.Answer(c, fiber.StatusOK, page)
}

func readTenant(d *handlers.Deps, c *fiber.Ctx) (models.Tenant, error) {
	name, err := handlers.PathParam(c, "id")
	if err != nil {
		return models.Tenant{}, err
	}
	return d.World.Tenant(c.UserContext(), name)
}

func getTenant(d *handlers.Deps, c *fiber.Ctx) error {
	tenant, err := readTenant(d, c)
	if err != nil {
		return err
	}
	handlers.SetETag(c, tenant.Version)
	return handlers.Answer(c, fiber.StatusOK, showTenant(tenant))
}

func patchTenant(d *handlers.Deps, c *fiber.Ctx) error {
	var ask tenantPatch
	if err := handlers.Bind(c, &ask); err != nil {
		return err
	}
	return editTenant(d, c, "tenant.edit", "", func(t *models.Tenant) {
		ask.Name.Into(&t.Name, "")
		ask.Weight.Into(&t.Weight, 1)
		ask.Timezone.Into(&t.Timezone, "UTC")
	})
}

// setSuspended is the handler of suspend and resume.
func setSuspended(suspended bool, action string) func(*handlers.Deps, *fiber.Ctx) error {
	return func(d *handlers.Deps, c *fiber.Ctx) error {
		reason, err := givenReason(c)
		if err != nil {
			return err
		}
		return editTenant(d, c, action, reason, func(t *models.Tenant) { t.Suspended = suspended })
	}
}

func editTenant(d *handlers.Deps, c *fiber.Ctx, action, reason string, change func(*models.Tenant)) error {
	read := func() (models.Tenant, int64, error) {
		t, err := readTenant(d, c)
		return t, t.Version, err
	}
	answer, err := edit(d, c, read, func(t *models.Tenant) (*engine.Configure, error) {
		change(t)
		return &engine.Configure{Tenant: t, Action: action, Reason: reason}, checkTenant(t)
	})
	if err != nil {
		return err
	}
	handlers.SetETag(c, answer.Tenant.Version)
	return handlers.Answer(c, fiber.StatusOK, showTenant(*answer.Tenant))
}
