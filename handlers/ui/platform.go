package ui

import (
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/gofiber/fiber/v2"

	"nightshift/handlers"
	"nightshift/models"
	"nightshift/models/postgres"
	"nightshift/scheduler/engine"
	"nightshift/templates"
)

func (p *pages) tenants(c *fiber.Ctx) error {
	form := templates.TenantForm{Weight: "1", Timezone: "UTC"}
	return p.showTenants(c, fiber.StatusOK, form)
}

func (p *pages) showTenants(c *fiber.Ctx, status int, form templates.TenantForm) error {
	rows, _, err := p.World.Tenants(c.UserContext(), postgres.RowList{Limit: mostChoices})
	if err != nil {
		return err
	}
	view := templates.TenantsView{Form: form}
	shares := sharesOf(p.look(c, &engine.Look{Shares: true}).Shares)
	figures, err := p.reads.TenantFigures(c.UserContext())
	view.Counted = err == nil // too many to count: the page stands without
	for _, t := range rows {
		f := figures[t.Number]
		view.Tenants = append(view.Tenants, templates.TenantRow{
			Ready: int(f.Ready), Running: int(f.Running), Dead: int(f.Dead), Succeeded: int(f.DoneToday),
			ID: t.ID.Text(models.TenantPrefix), Slug: t.Slug, Name: t.Name, Weight: t.Weight, Timezone: t.Timezone, Suspended: t.Suspended,
			Got: shares[t.Number].got, Deserved: shares[t.Number].deserved, CreatedAt: t.CreatedAt.Time(),
		})
	}
	if c.Query("fragment") == "tenants" {
		return show(c, status, templates.TenantsRegion(p.fragment(c, "Tenants", "/tenants"), view))
	}
	page, err := p.whole(c, "Tenants", "/tenants")
	if err != nil {
		return err
	}
	return show(c, status, templates.Tenants(page, view))
}

func (p *pages) createTenant(c *fiber.Ctx) error {
	form := templates.TenantForm{
		Name: strings.TrimSpace(c.FormValue("name")), Slug: strings.TrimSpace(c.FormValue("slug")),
		Weight: c.FormValue("weight"), Timezone: strings.TrimSpace(c.FormValue("timezone")),
	}
	tenant := readTenant(&form)
	if len(form.Wrong) > 0 {
		return p.showTenants(c, fiber.StatusUnprocessableEntity, form)
	}
	tenant.ID = p.Mint()
	command := p.Command(handlers.CallerOf(c))
	command.Configure = &engine.Configure{Tenant: &tenant, New: true, Action: "tenant.create"}
	_, err := p.Door.Do(c.UserContext(), command)
	if models.CodeOf(err) == models.StateConflict {
		form.Wrong["slug"] = sentence(detail(err))
		return p.showTenants(c, fiber.StatusConflict, form)
	}
	p.Directory.Forget()
	return done(c, frame(c, "", "").URL("/tenants"), tenant.Name+" is there, with the environment production and a lane a kind.", err)
}

// readTenant checks what was typed; what is wrong stands beside its field.
func readTenant(form *templates.TenantForm) models.Tenant {
	form.Wrong = map[string]string{}
	tenant := models.Tenant{Name: form.Name, Slug: form.Slug, Timezone: form.Timezone}
	if !handlers.Storable(form.Name) || form.Name == "" || len(form.Name) > 200 {
		form.Wrong["name"] = "A name of at most 200 bytes."
		form.Name = ""
	}
	if !handlers.IsName(form.Slug) {
		form.Wrong["slug"] = "Small letters, digits, dots, colons, dashes; a letter or digit first."
		form.Slug = ""
	}
	weight, err := strconv.ParseFloat(strings.TrimSpace(form.Weight), 64)
	if err != nil || !(weight > 0 && weight <= 1_000_000) {
		form.Wrong["weight"] = "A number above 0."
		form.Weight = "1"
	}
	tenant.Weight = weight
	if tenant.Timezone == "" {
		tenant.Timezone, form.Timezone = "UTC", "UTC"
	}
	if _, err := time.LoadLocation(tenant.Timezone); err != nil || tenant.Timezone == "Local" {
		form.Wrong["timezone"] = "A zone like Europe/Lisbon."
		form.Timezone = "UTC"
	}
	return tenant
}

// actOnTenant is suspend or resume of a tenant.
func (p *pages) actOnTenant(verb, text string) fiber.Handler {
	return func(c *fiber.Ctx) error {
		name, err := handlers.PathParam(c, "name")
		if err != nil {
			return err
		}
		return p.act(c, place(c, "/tenants"), strings.ReplaceAll(text, "%", name), apiPath("tenants", name, verb), reasonOf(c))
	}
}

func (p *pages) system(c *fiber.Ctx) error {
	view, err := p.systemView(c)
	if err != nil {
		return err
	}
	if c.Query("fragment") == "system" {
		return show(c, fiber.StatusOK, templates.SystemRegion(p.fragment(c, "System", "/system"), view))
	}
	page, err := p.whole(c, "System", "/system")
	if err != nil {
		return err
	}
	return show(c, fiber.StatusOK, templates.System(page, view))
}

func (p *pages) systemView(c *fiber.Ctx) (view templates.SystemView, err error) {
	brain, err := p.World.Brain(c.UserContext())
	if err != nil {
		return view, err
	}
	replicas, err := p.World.Replicas(c.UserContext())
	if err != nil {
		return view, err
	}
	view.Epoch, view.Batch, view.Address = int(brain.Epoch), int(brain.Batch), brain.Address
	view.RenewedAt = p.Now().Add(-brain.RenewedAgo).Time()
	for _, r := range replicas {
		row := templates.ReplicaRow{
			ID: r.ID.Text("rep"), Address: r.Address, PID: int(r.PID), Version: r.Version, Brain: r.Address == brain.Address, LastSeen: r.LastSeen,
		}
		if row.Brain {
			view.Brain = row.ID
		}
		view.Replicas = append(view.Replicas, row)
	}
	view.Build = []templates.Pair{{Name: "Version", Value: p.Version}, {Name: "Go", Value: runtime.Version()}}
	if stats := p.look(c, &engine.Look{Stats: true}).Stats; stats != nil {
		view.Board = boardPairs(stats)
	}
	database, err := p.World.Database(c.UserContext())
	view.Database = databasePairs(&database)
	return view, err
}

func databasePairs(d *postgres.Database) []templates.Pair {
	return []templates.Pair{
		{Name: "PostgreSQL", Value: d.Version},
		{Name: "Size", Value: fmt.Sprintf("%.1f MB", float64(d.SizeBytes)/(1<<20))},
		{Name: "Oldest transaction", Value: fmt.Sprintf("%.1f s", d.OldestTransactionSeconds)},
		{Name: "Connections", Value: fmt.Sprintf("%d of %d", d.Connections, d.MostConnections)},
		{Name: "Dead rows", Value: strconv.FormatInt(d.DeadRows, 10)},
	}
}

func boardPairs(s *engine.Stats) []templates.Pair {
	pair := func(name string, n int64) templates.Pair {
		return templates.Pair{Name: name, Value: strconv.FormatInt(n, 10)}
	}
	return []templates.Pair{
		pair("Entries", s.Entries), pair("Lines", s.Lines), pair("Running", s.Running), pair("Parked tasks", s.Parked),
		pair("Waiting claims", s.Claims), pair("Starts decided", s.Decisions), pair("Refills", s.Counters["refills"]),
		pair("Rebuilds", s.Counters["rebuilds"]),
	}
}
