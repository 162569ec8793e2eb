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
	lanes, stats, err := p.lanesWithStats(c)
	if err != nil {
		return err
	}
	var view templates.LanesView
	for _, lane := range lanes {
		view.Lanes = append(view.Lanes, templates.LaneRow{
			LaneTile: laneTile(&lane, stats[lane.Number], p.Now()), Weight: lane.Weight, Patterns: lane.TaskTypes,
			HighWater: int(lane.HighWater), Description: lane.Description, Pause: !lane.Paused, Resume: lane.Paused,
		})
	}
	if c.Query("fragment") == "lanes" {
		return show(c, fiber.StatusOK, templates.LanesRegion(p.fragment(c, "Lanes", "/lanes"), view))
	}
	page, err := p.whole(c, "Lanes", "/lanes")
	if err != nil {
		return err
	}
	return show(c, fiber.StatusOK, templates.Lanes(page, view))
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
		Name: lane.Name, Kind: lane.Kind.String(), State: laneState(lane), Reason: lane.Reason, Depth: int(s.Depth), Running: int(s.Running),
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

func laneState(lane *models.Lane) string {
	switch {
	case lane.Paused:
		return "paused"
	case lane.Draining:
		return "draining"
	default:
		return "open"
	}
}

func (p *pages) pauseLane(c *fiber.Ctx) error  { return p.setLane(c, true) }
func (p *pages) resumeLane(c *fiber.Ctx) error { return p.setLane(c, false) }

func (p *pages) setLane(c *fiber.Ctx, paused bool) error {
	caller := handlers.CallerOf(c)
	name, err := handlers.PathParam(c, "name")
	if err != nil {
		return err
	}
	reason, err := readReason(c)
	if err != nil {
		return err
	}
	lane, err := p.World.Lane(c.UserContext(), caller.Scope(), caller.Env, name)
	if err == nil {
		lane.Paused, lane.Reason = paused, ""
		action, text := "lane.resume", "The lane "+name+" goes on."
		if paused {
			lane.Reason, action, text = reason, "lane.pause", "Nothing of the lane "+name+" starts any more."
		}
		command := p.Command(caller)
		command.Configure = &engine.Configure{Lane: &lane, Version: lane.Version, Action: action, Reason: reason}
		_, err = p.Door.Do(c.UserContext(), command)
		return done(c, frame(c, "", "").URL("/lanes"), text, err)
	}
	return done(c, frame(c, "", "").URL("/lanes"), "", err)
}
