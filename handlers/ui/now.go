package ui

import (
	"github.com/gofiber/fiber/v2"

	"nightshift/handlers"
	"nightshift/models"
	"nightshift/models/postgres"
	"nightshift/scheduler/engine"
	"nightshift/templates"
)

// How much of each the first page shows.
const (
	nowFlows  = 8
	nowGroups = 6
	nowEvents = 14
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

// readRecent tells what happened last, with the types of the tasks.
func (p *pages) readRecent(c *fiber.Ctx, view *templates.NowView) error {
	caller := handlers.CallerOf(c)
	events := p.hub.Recent(caller.Env, nowEvents)
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
	workers, err := p.workerNames(c)
	for _, e := range events {
		view.Recent = append(view.Recent, happening(e, names, workers))
	}
	return err
}
