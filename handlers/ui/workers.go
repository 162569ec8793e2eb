package ui

import (
	"time"

	"github.com/gofiber/fiber/v2"

	"nightshift/handlers"
	"nightshift/models"
	"nightshift/models/postgres"
	"nightshift/scheduler/engine"
	"nightshift/templates"
)

const (
	mostWorkers = 500
	mostRunning = 100 // tasks listed on a worker's page
)

func (p *pages) workers(c *fiber.Ctx) error {
	cards, err := p.workerCards(c)
	if err != nil {
		return err
	}
	view := templates.WorkersView{Workers: cards, Server: c.BaseURL()}
	if c.Query("fragment") == "fleet" {
		return show(c, fiber.StatusOK, templates.FleetRegion(p.fragment(c, "Workers", "/workers"), view))
	}
	page, err := p.whole(c, "Workers", "/workers")
	if err != nil {
		return err
	}
	return show(c, fiber.StatusOK, templates.Workers(page, view))
}

// workerCards are the workers that are not gone, with what the brain knows of their use.
func (p *pages) workerCards(c *fiber.Ctx) ([]templates.WorkerCard, error) {
	caller := handlers.CallerOf(c)
	rows, err := p.reads.Workers(c.UserContext(), &postgres.WorkerFilter{Tenant: caller.Tenant, Platform: caller.Platform, Limit: mostWorkers})
	if err != nil {
		return nil, err
	}
	stats := p.workerStats(c)
	cards := make([]templates.WorkerCard, 0, len(rows))
	for i := range rows {
		card, err := p.workerCard(c, &rows[i], stats[rows[i].ID])
		if err != nil {
			return nil, err
		}
		cards = append(cards, card)
	}
	return cards, nil
}

func (p *pages) workerStats(c *fiber.Ctx) map[models.ID]engine.WorkerStats {
	out := map[models.ID]engine.WorkerStats{}
	for _, s := range p.look(c, &engine.Look{Workers: true}).Workers {
		out[s.Worker] = s
	}
	return out
}

func (p *pages) workerCard(c *fiber.Ctx, w *models.Worker, s engine.WorkerStats) (templates.WorkerCard, error) {
	seen := max(w.LastSeen, s.LastSeen)
	card := templates.WorkerCard{
		ID: w.ID.Text(models.WorkerPrefix), Name: w.Name, State: workerState(w, seen, p.Now()), Pool: w.Pool, Version: w.Version,
		CPU:      templates.Use{Used: float64(s.CPUMilli) / 1000, Total: float64(w.CPUMilli) / 1000},
		MemoryMB: templates.Use{Used: float64(s.MemoryMB), Total: float64(w.MemoryMB)},
		Models:   w.Models, Types: w.TaskTypes, Lanes: w.Lanes, Permissions: w.Permissions, Labels: sortedPairs(w.Labels),
		Leases: int(s.Leases), LastSeen: seen.Time(), LeaseSeconds: int(w.LeaseSeconds), RegisteredAt: w.CreatedAt.Time(),
	}
	if w.AnyModel {
		card.Models = []string{"any model"}
	}
	if w.AnyPermit {
		card.Permissions = []string{"all"}
	}
	card.Slots = []templates.NamedUse{{Name: "slots", Use: templates.Use{Used: float64(s.Leases), Total: float64(slotsOf(w))}}}
	for i, gpu := range w.GPUs {
		use := templates.Use{Total: float64(gpu.VRAMMB)}
		if i < len(s.VRAMMB) {
			use.Used = float64(s.VRAMMB[i])
		}
		card.GPUs = append(card.GPUs, use)
	}
	mine := ownsWorker(handlers.CallerOf(c), w)
	card.Drain, card.Remove = mine && w.State == models.WorkerActive, mine && w.State != models.WorkerGone
	if w.Tenant == 0 {
		return card, nil
	}
	tenant, err := p.Directory.TenantByNumber(c.UserContext(), w.Tenant)
	card.Tenant = tenant.Slug
	return card, err
}

func slotsOf(w *models.Worker) int32 {
	total := w.Slots
	for _, n := range w.KindSlots {
		total += n
	}
	return total
}

func workerState(w *models.Worker, seen, now models.Instant) string {
	switch {
	case w.State == models.WorkerGone:
		return "lost"
	case now.Sub(seen) > max(15*time.Second, models.Seconds(int(w.LeaseSeconds))):
		return "silent"
	case w.State == models.WorkerDraining || w.Draining:
		return "draining"
	default:
		return "live"
	}
}

// ownsWorker says who may drain or remove a worker: a shared one only the platform.
func ownsWorker(caller *handlers.Caller, w *models.Worker) bool {
	return caller.Platform || w.Tenant != 0 && w.Tenant == caller.Tenant && caller.Holds(handlers.AdminWrite)
}

func (p *pages) worker(c *fiber.Ctx) error {
	w, err := p.namedWorker(c)
	if err != nil {
		return err
	}
	card, err := p.workerCard(c, &w, p.workerStats(c)[w.ID])
	if err != nil {
		return err
	}
	if err := p.runningOf(c, &w, &card); err != nil {
		return err
	}
	if c.Query("fragment") == "worker" {
		return show(c, fiber.StatusOK, templates.WorkerRegion(p.fragment(c, "Worker", "/workers"), card))
	}
	page, err := p.whole(c, "Worker", "/workers")
	if err != nil {
		return err
	}
	page.Title = card.Name
	return show(c, fiber.StatusOK, templates.Worker(page, card))
}

// runningOf lists what the worker runs of the environment that is looked at.
func (p *pages) runningOf(c *fiber.Ctx, w *models.Worker, card *templates.WorkerCard) error {
	caller := handlers.CallerOf(c)
	if caller.Env == 0 {
		return nil
	}
	rows, err := p.reads.Tasks(c.UserContext(), caller.Scope(), caller.Env, &postgres.TaskFilter{
		Workers: []models.ID{w.ID}, States: []models.State{models.Running, models.CancelRequested}, Limit: mostRunning,
	})
	for i := range rows {
		card.Running = append(card.Running, taskRef(&rows[i]))
	}
	return err
}

func (p *pages) namedWorker(c *fiber.Ctx) (models.Worker, error) {
	caller := handlers.CallerOf(c)
	id, err := handlers.PathID(c, "id", models.WorkerPrefix)
	if err != nil {
		return models.Worker{}, err
	}
	return p.reads.Worker(c.UserContext(), caller.Tenant, caller.Platform, id)
}

func (p *pages) drainWorker(c *fiber.Ctx) error  { return p.retire(c, false) }
func (p *pages) removeWorker(c *fiber.Ctx) error { return p.retire(c, true) }

func (p *pages) retire(c *fiber.Ctx, gone bool) error {
	w, err := p.namedWorker(c)
	if err != nil {
		return err
	}
	caller := handlers.CallerOf(c)
	if !ownsWorker(caller, &w) {
		return models.Errorf(models.Forbidden, "this worker serves every tenant; only the platform may take it away")
	}
	command := p.Command(caller)
	command.Retire = &engine.Retire{Worker: w.ID, Gone: gone}
	_, err = p.Door.Do(c.UserContext(), command)
	text := w.Name + " takes no more tasks."
	if gone {
		text = w.Name + " is removed; its leases went back."
	}
	return done(c, frame(c, "", "").URL("/workers"), text, err)
}
