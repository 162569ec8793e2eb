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

// table is every route of the pages.
func (p *pages) table() []page { return append(p.workPages(), p.worldPages()...) }

// workPages are those of schedules, tasks, workflows and lanes.
func (p *pages) workPages() []page {
	const get, post = fiber.MethodGet, fiber.MethodPost
	const read, write, admin = handlers.TasksRead, handlers.TasksWrite, handlers.AdminWrite
	const look, plan = handlers.SchedulesRead, handlers.SchedulesWrite
	return []page{
		{get, "/login", handlers.Public, false, p.login},
		{post, "/login", handlers.Public, false, p.signIn},
		{post, "/logout", handlers.AnyToken, false, p.signOut},
		{get, "/", read, true, p.now},
		{get, "/start", handlers.AnyToken, false, p.start},
		{get, "/ui/stream", handlers.AnyToken, false, p.stream},
		{get, "/schedules", look, true, p.schedules},
		{post, "/schedules", plan, true, p.createSchedule},
		{get, "/schedules/new", plan, true, p.newSchedule},
		{get, "/schedules/preview", plan, true, p.previewSchedule},
		{get, "/schedules/quieter", plan, true, p.quieter},
		{get, "/schedules/count", plan, true, p.countSchedules},
		{post, "/schedules/bulk", plan, true, p.bulkSchedules},
		{get, "/schedules/:id", look, true, p.schedule},
		{get, "/schedules/:id/edit", plan, true, p.editSchedule},
		{post, "/schedules/:id/edit", plan, true, p.saveSchedule},
		{get, "/schedules/:id/backfill", plan, true, p.backfill},
		{post, "/schedules/:id/backfill", plan, true, p.startBackfill},
		{post, "/schedules/:id/pause", plan, true, p.actOnSchedule("pause", "The schedule is paused: its occurrences are skipped.")},
		{post, "/schedules/:id/resume", plan, true, p.actOnSchedule("resume", "The schedule goes on.")},
		{post, "/schedules/:id/trigger", plan, true, p.runSchedule},
		{post, "/schedules/:id/move", plan, true, p.moveSchedule},
		{post, "/schedules/:id/rollback", plan, true, p.rollbackSchedule},
		{post, "/schedules/:id/delete", plan, true, p.deleteSchedule},
		{get, "/tasks", read, true, p.tasks},
		{get, "/tasks/:id", read, true, p.task},
		{post, "/tasks/:id/cancel", write, true, p.actOnTask("cancel", "The task is cancelled, or its worker is asked to stop.")},
		{post, "/tasks/:id/discard", write, true, p.actOnTask("discard", "The task is given up.")},
		{post, "/tasks/:id/approve", write, true, p.actOnTask("approve", "The task may start.")},
		{post, "/tasks/:id/reject", write, true, p.actOnTask("reject", "The task is rejected: it never starts.")},
		{post, "/tasks/:id/edit", write, true, p.editTask},
		{get, "/tasks/:id/retry", write, true, p.editRetry},
		{post, "/tasks/:id/retry", write, true, p.retryTask},
		{get, "/workflows", read, true, p.workflows},
		{get, "/workflows/:id", read, true, p.workflow},
		{post, "/workflows/:id/cancel", write, true, p.actOnFlow("cancel", "The workflow is being cancelled.")},
		{post, "/workflows/:id/pause", write, true, p.actOnFlow("pause", "Nothing more of it starts.")},
		{post, "/workflows/:id/resume", write, true, p.actOnFlow("resume", "The workflow goes on.")},
		{post, "/workflows/:id/retry", write, true, p.actOnFlow("retry", "Its dead letters get new attempts.")},
		{post, "/workflows/:id/rerun", write, true, p.rerunFlow},
		{post, "/workflows/:id/skip", write, true, p.skipInFlow},
		{get, "/dead-letters", read, true, p.deadLetters},
		{get, "/dead-letters/count", write, true, p.countDead},
		{post, "/dead-letters/redrive", write, true, p.redriveDead},
		{post, "/dead-letters/discard", write, true, p.discardDead},
		{get, "/lanes", read, true, p.lanes},
		{get, "/lanes/:name", read, true, p.lane},
		{post, "/lanes/:name/edit", admin, true, p.editLane},
		{post, "/lanes/:name/pause", admin, true, p.actOnLane("pause", "Nothing of the lane % starts any more.")},
		{post, "/lanes/:name/resume", admin, true, p.actOnLane("resume", "The lane % goes on.")},
		{post, "/lanes/:name/drain", admin, true, p.actOnLane("drain", "The lane % takes nothing new and works off what it has.")},
	}
}

// worldPages are those of workers, settings and the platform.
func (p *pages) worldPages() []page {
	const get, post = fiber.MethodGet, fiber.MethodPost
	const read, see, admin, platform = handlers.TasksRead, handlers.AdminRead, handlers.AdminWrite, handlers.Platform
	return []page{
		{get, "/workers", read, false, p.workers},
		{get, "/workers/:id", read, false, p.worker},
		{post, "/workers/:id/drain", admin, false, p.drainWorker},
		{post, "/workers/:id/remove", admin, false, p.removeWorker},
		{get, "/settings", see, true, p.settings},
		{post, "/settings/keys", admin, true, p.createKey},
		{post, "/settings/keys/:id/rotate", admin, true, p.rotateKey},
		{post, "/settings/keys/:id/revoke", admin, true, p.revokeKey},
		{get, "/environments", see, true, p.environments},
		{post, "/environments", admin, true, p.createEnvironment},
		{post, "/environments/:name/pause", admin, true, p.actOnEnvironment("pause", "Nothing of % starts any more.")},
		{post, "/environments/:name/resume", admin, true, p.actOnEnvironment("resume", "% goes on.")},
		{post, "/environments/:name/edit", admin, true, p.editEnvironment},
		{post, "/environments/:name/thaw", admin, true, p.thaw},
		{post, "/freezes", admin, true, p.freeze},
		{get, "/activity", see, true, p.activity},
		{get, "/tenants", platform, false, p.tenants},
		{post, "/tenants", platform, false, p.createTenant},
		{post, "/tenants/:name/suspend", platform, false, p.actOnTenant("suspend", "Nothing of % starts any more.")},
		{post, "/tenants/:name/resume", platform, false, p.actOnTenant("resume", "% goes on.")},
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
