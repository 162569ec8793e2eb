package ui

import (
	"github.com/gofiber/fiber/v2"

	"nightshift/handlers"
	"nightshift/models"
	"nightshift/models/postgres"
	"nightshift/scheduler/engine"
	"nightshift/templates"
)

const mostLanes = 500

func (p *pages) lanes(c *fiber.Ctx) error {
	rows, err := p.laneRows(c)
	if err != nil {
		return err
	}
	view := templates.LanesView{Lanes: rows}
	if c.Query("fragment") == "lanes" {
		return show(c, fiber.StatusOK, templates.LanesRegion(p.fragment(c, "Lanes", "/lanes"), view))
	}
	page, err := p.whole(c, "Lanes", "/lanes")
	if err != nil {
		return err
	}
	return show(c, fiber.StatusOK, templates.Lanes(page, view))
}

// laneRows are the lanes of the environment with what the brain knows of them.
func (p *pages) laneRows(c *fiber.Ctx) (rows []templates.LaneRow, err error) {
	lanes, stats, err := p.lanesWithStats(c)
	if err != nil {
		return nil, err
	}
	kinds, err := p.World.Kinds(c.UserContext())
	if err != nil {
		return nil, err
	}
	for _, lane := range lanes {
		rows = append(rows, templates.LaneRow{
			LaneTile: laneTile(&lane, stats[lane.Number], p.Now()), Weight: lane.Weight, Patterns: lane.TaskTypes,
			HighWater: int(lane.HighWater), Description: lane.Description, Pause: !lane.Paused, Resume: lane.Paused || lane.Draining,
			Drain: !lane.Draining, Elastic: lane.Elastic || kinds[lane.Kind].Elastic, Holds: holdsOf(stats[lane.Number].Held),
		})
	}
	return rows, nil
}

func (p *pages) lanesWithStats(c *fiber.Ctx) ([]models.Lane, map[int32]engine.LaneStats, error) {
	caller := handlers.CallerOf(c)
	lanes, _, err := p.World.Lanes(c.UserContext(), caller.Scope(), caller.Env, postgres.RowList{Limit: mostLanes})
	stats := map[int32]engine.LaneStats{}
	for _, s := range p.look(c, &engine.Look{Lanes: caller.Env}).Lanes {
		stats[s.Lane] = s
	}
	return lanes, stats, err
}

func laneTile(lane *models.Lane, s engine.LaneStats, now models.Instant) templates.LaneTile {
	tile := templates.LaneTile{
		Name: lane.Name, Kind: lane.Kind.String(), State: laneState(lane, s.Held), Reason: lane.Reason, Depth: int(s.Depth), Running: int(s.Running),
		Limit: int(lane.MaxConcurrent), InPerSecond: s.InPerSecond, OutPerSecond: s.OutPerSecond,
	}
	if s.OldestReady > 0 {
		tile.OldestSeconds = max(0, now.Sub(models.Instant(s.OldestReady)).Seconds())
	}
	if pace := s.OutPerSecond - s.InPerSecond; pace > 0 && s.Depth > 0 {
		seconds := float64(s.Depth) / pace
		tile.EmptySeconds = &seconds
	}
	return tile
}

// holdsOf are the pools in which a lane is held back.
func holdsOf(list []engine.LaneHold) (out []templates.LaneHold) {
	for _, h := range list {
		hold := templates.LaneHold{Pool: h.Pool, Room: int(h.Room), Running: int(h.Running), Slots: h.Capacity, Needed: h.Needed, Says: h.Says}
		if h.Until > 0 {
			hold.Until = h.Until.Time()
		}
		out = append(out, hold)
	}
	return out
}

func laneState(lane *models.Lane, held []engine.LaneHold) string {
	switch {
	case lane.Paused:
		return "paused"
	case lane.Draining:
		return "draining"
	case len(held) > 0:
		return "held"
	default:
		return "open"
	}
}
