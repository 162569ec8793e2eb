package ui

import (
	"strings"

	"github.com/gofiber/fiber/v2"

	"nightshift/handlers"
	"nightshift/models/postgres"
	"nightshift/static"
)

// pages is what the handlers share.
type pages struct {
	*handlers.Deps
	reads *postgres.Reads
	hub   *Hub
}

// page is one row of the table of routes: who may see or do it.
type page struct {
	method, path string
	scope        string // handlers.Public: anybody; handlers.AnyToken: whoever is signed in
	tenant       bool   // shows or changes what belongs to a tenant
	handler      fiber.Handler
}

func (p *pages) table() []page {
	const get, post = fiber.MethodGet, fiber.MethodPost
	const read, write, admin, platform = handlers.TasksRead, handlers.TasksWrite, handlers.AdminWrite, handlers.Platform
	return []page{
		{get, "/login", handlers.Public, false, p.login},
		{post, "/login", handlers.Public, false, p.signIn},
		{post, "/logout", handlers.AnyToken, false, p.signOut},
		{get, "/", read, true, p.now},
		{get, "/start", handlers.AnyToken, false, p.start},
		{get, "/ui/stream", handlers.AnyToken, false, p.stream},
		{get, "/tasks", read, true, p.tasks},
		{get, "/tasks/:id", read, true, p.task},
		{post, "/tasks/:id/cancel", write, true, p.cancelTask},
		{post, "/tasks/:id/retry", write, true, p.redriveTask},
		{post, "/tasks/:id/discard", write, true, p.discardTask},
		{get, "/workflows", read, true, p.workflows},
		{get, "/workflows/:id", read, true, p.workflow},
		{post, "/workflows/:id/cancel", write, true, p.cancelWorkflow},
		{post, "/workflows/:id/retry", write, true, p.redriveWorkflow},
		{get, "/dead-letters", read, true, p.deadLetters},
		{post, "/dead-letters/redrive", write, true, p.redriveDead},
		{post, "/dead-letters/discard", write, true, p.discardDead},
		{get, "/lanes", read, true, p.lanes},
		{post, "/lanes/:name/pause", admin, true, p.pauseLane},
		{post, "/lanes/:name/resume", admin, true, p.resumeLane},
		{get, "/workers", read, false, p.workers},
		{get, "/workers/:id", read, false, p.worker},
		{post, "/workers/:id/drain", admin, false, p.drainWorker},
		{post, "/workers/:id/remove", admin, false, p.removeWorker},
		{get, "/tenants", platform, false, p.tenants},
		{post, "/tenants", platform, false, p.createTenant},
		{post, "/tenants/:name/suspend", platform, false, p.suspendTenant},
		{post, "/tenants/:name/resume", platform, false, p.resumeTenant},
		{get, "/system", platform, false, p.system},
	}
}

// Pages mounts the pages behind a guard that knows who is signed in.
func Pages(hub *Hub) func(fiber.Router, *handlers.Deps) {
	return func(router fiber.Router, d *handlers.Deps) {
		p := &pages{Deps: d, reads: postgres.NewReads(d.DB), hub: hub}
		router.Get(static.Prefix+"*", static.Handler)
		router.Get("/favicon.ico", func(c *fiber.Ctx) error { return c.Redirect(static.URL("favicon.svg"), fiber.StatusFound) })
		for _, row := range p.table() {
			if row.scope == "" {
				panic(row.method + " " + row.path + " says no scope")
			}
			router.Add(row.method, row.path, guarded(row))
			if row.method == fiber.MethodGet && row.path != "/ui/stream" {
				router.Add(fiber.MethodHead, row.path, guarded(row))
			}
		}
	}
}

// guarded checks the scope of a page, whatever buttons the viewer was shown.
func guarded(row page) fiber.Handler {
	return func(c *fiber.Ctx) error {
		caller := handlers.CallerOf(c)
		switch {
		case row.scope == handlers.Public:
		case caller.Sub == "":
			return c.Redirect("/login", fiber.StatusSeeOther)
		case row.scope != handlers.AnyToken && !caller.Holds(row.scope):
			return forbidden(row)
		case row.tenant && caller.Tenant == 0:
			return c.Redirect("/tenants", fiber.StatusSeeOther)
		}
		return row.handler(c)
	}
}

func isWrite(row page) bool { return strings.EqualFold(row.method, fiber.MethodPost) }
