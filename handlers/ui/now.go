package ui

import (
	"maps"
	"slices"

	"github.com/gofiber/fiber/v2"

	"nightshift/handlers"
	"nightshift/models"
	"nightshift/models/postgres"
	"nightshift/scheduler/calendar"
	"nightshift/scheduler/engine"
	"nightshift/templates"
)

// How much of each the first page shows.
const (
	nowFlows  = 8
	nowGroups = 6
	nowEvents = 14
	nowNext   = 10

	mostTimings = 500 // schedules that are asked when they run next
)

func (p *pages) now(c *fiber.Ctx) error {
	if part := p.nowPart(c.Query("fragment")); part != nil {
		var view templates.NowView
		if err := part.read(c, &view); err != nil {
			return err
		}
		return show(c, fiber.StatusOK, part.draw(p.fragment(c, "Now", "/"), view))
	}
	page, err := p.whole(c, "Now", "/")
	if err != nil {
		return err
	}
	var view templates.NowView
	for _, part := range p.nowParts() {
		if err := part.read(c, &view); err != nil {
			return err
		}
	}
	return show(c, fiber.StatusOK, templates.Now(page, view))
}

func (p *pages) readTiles(c *fiber.Ctx, view *templates.NowView) error {
	lanes, stats, err := p.lanesWithStats(c)
	for _, lane := range lanes {
		view.Lanes = append(view.Lanes, laneTile(&lane, stats[lane.Number], p.Now()))
	}
	return err
}

func (p *pages) readStates(c *fiber.Ctx, view *templates.NowView) error {
	view.States = p.stateCounts(c)
	return nil
}

func (p *pages) readFlows(c *fiber.Ctx, view *templates.NowView) error {
	caller := handlers.CallerOf(c)
	rows, err := p.reads.Workflows(c.UserContext(), caller.Scope(), caller.Env, &postgres.WorkflowFilter{Desc: true, Limit: nowFlows})
	for i := range rows {
		view.Workflows = append(view.Workflows, workflowRow(&rows[i]))
	}
	return err
}

func (p *pages) readDead(c *fiber.Ctx, view *templates.NowView) (err error) {
	view.Dead, err = p.deadGroups(c, nowGroups)
	return err
}

// readFleet sums up the fleet by pool.
func (p *pages) readFleet(c *fiber.Ctx, view *templates.NowView) error {
	cards, err := p.workerCards(c)
	if err != nil {
		return err
	}
	at := map[string]int{}
	for _, card := range cards {
		switch card.State {
		case "silent":
			view.Workers.Silent++
		case "draining":
			view.Workers.Draining++
		default:
			view.Workers.Live++
		}
		i, known := at[card.Pool]
		if !known {
			i = len(view.Workers.Pools)
			at[card.Pool] = i
			view.Workers.Pools = append(view.Workers.Pools, templates.PoolUse{Name: card.Pool})
		}
		addToPool(&view.Workers.Pools[i], card)
	}
	return nil
}

func addToPool(pool *templates.PoolUse, card templates.WorkerCard) {
	pool.Workers++
	for _, slots := range card.Slots {
		pool.Slots.Used, pool.Slots.Total = pool.Slots.Used+slots.Used, pool.Slots.Total+slots.Total
	}
	for _, gpu := range card.GPUs {
		pool.VRAM.Used, pool.VRAM.Total = pool.VRAM.Used+gpu.Used, pool.VRAM.Total+gpu.Total
	}
}

// readShares is for the platform alone: what each tenant got is nobody else's business.
func (p *pages) readShares(c *fiber.Ctx, view *templates.NowView) error {
	if !handlers.CallerOf(c).Platform {
		return nil
	}
	tenants, _, err := p.World.Tenants(c.UserContext(), postgres.RowList{Limit: mostChoices})
	shares := sharesOf(p.look(c, &engine.Look{Shares: true}).Shares)
	for _, t := range tenants {
		if s, got := shares[t.Number]; got {
			view.Shares = append(view.Shares, templates.ShareRow{Tenant: t.Slug, Weight: t.Weight, Got: s.got, Deserved: s.deserved})
		}
	}
	return err
}

// share is what a tenant got of all that was charged, and what its weight deserves of it.
type share struct{ got, deserved float64 }

// sharesOf adds pools and kinds up: each counts by what was charged in it.
func sharesOf(rows []engine.TenantShare) map[int32]share {
	type place struct{ pool, kind string }
	charged, all := map[place]float64{}, 0.0
	for _, r := range rows {
		charged[place{r.Pool, r.Kind}] += r.Charged
		all += r.Charged
	}
	out := map[int32]share{}
	if all == 0 {
		return out
	}
	for _, r := range rows {
		s := out[r.Tenant]
		s.got += r.Charged / all
		s.deserved += r.Deserved * charged[place{r.Pool, r.Kind}] / all
		out[r.Tenant] = s
	}
	return out
}

// lastEvents are those that the hub has heard or, soon after a start, those that are stored.
func (p *pages) lastEvents(c *fiber.Ctx) ([]models.Event, error) {
	caller := handlers.CallerOf(c)
	heard := p.hub.Recent(caller.Env, nowEvents)
	if len(heard) == nowEvents {
		return heard, nil
	}
	stored, err := p.DB.LastEvents(c.UserContext(), caller.Env, 4*nowEvents)
	if err != nil {
		return nil, err
	}
	stored = slices.DeleteFunc(stored, func(e models.Event) bool { return !toldOf(e) || len(heard) > 0 && e.At >= heard[len(heard)-1].At })
	return slices.Concat(heard, stored)[:min(nowEvents, len(heard)+len(stored))], nil
}

// readNext lists what comes next by the clock.
func (p *pages) readNext(c *fiber.Ctx, view *templates.NowView) error {
	caller := handlers.CallerOf(c)
	if !caller.Holds(handlers.SchedulesRead) {
		return nil
	}
	timings, err := p.World.Timings(c.UserContext(), caller.Scope(), caller.Env, mostTimings)
	if err != nil {
		return err
	}
	view.Scheduled = len(timings) > 0
	for _, t := range timings {
		if !timed(t.Rule.Kind) || t.Rule.FromEnd {
			continue
		}
		table, err := calendar.Of(&t.Rule, t.CreatedAt)
		if err != nil {
			continue // it was checked when it was saved
		}
		if o, ok := table.NextRun(max(p.Now(), t.Mark).Time()); ok {
			view.Next = append(view.Next, templates.Upcoming{ID: t.ID.Text(models.SchedulePrefix), Name: t.Name, At: o.At, Words: table.Rule.Words()})
		}
	}
	slices.SortFunc(view.Next, func(a, b templates.Upcoming) int { return a.At.Compare(b.At) })
	view.Next = view.Next[:min(nowNext, len(view.Next))]
	return nil
}

// readRecent tells what happened last, with the types of the tasks.
func (p *pages) readRecent(c *fiber.Ctx, view *templates.NowView) error {
	caller := handlers.CallerOf(c)
	events, err := p.lastEvents(c)
	if err != nil {
		return err
	}
	var ids []models.ID
	for _, e := range events {
		if !e.Task.IsZero() {
			ids = append(ids, e.Task)
		}
	}
	names := map[models.ID]string{}
	if len(ids) > 0 {
		rows, err := p.reads.TasksByID(c.UserContext(), caller.Scope(), caller.Env, ids, postgres.Include{})
		if err != nil {
			return err
		}
		for i := range rows {
			names[rows[i].ID] = taskRef(&rows[i]).Name
		}
	}
	schedules, err := p.scheduleNames(c, events)
	if err != nil {
		return err
	}
	maps.Copy(names, schedules)
	workers, err := p.workerNames(c)
	for _, e := range events {
		view.Recent = append(view.Recent, happening(e, names, workers))
	}
	return err
}

func (p *pages) scheduleNames(c *fiber.Ctx, events []models.Event) (map[models.ID]string, error) {
	var ids []models.ID
	for _, e := range events {
		if !e.Schedule.IsZero() {
			ids = append(ids, e.Schedule)
		}
	}
	if len(ids) == 0 {
		return nil, nil
	}
	caller := handlers.CallerOf(c)
	return p.World.ScheduleNames(c.UserContext(), caller.Scope(), caller.Env, ids)
}
