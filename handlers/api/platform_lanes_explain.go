package api

import (
	"context"

	"github.com/gofiber/fiber/v2"

	"nightshift/handlers"
	"nightshift/models"
	"nightshift/scheduler/engine"
)

// laneHead is the first task of a line: of tasks with the same requirements.
type laneHead struct {
	TaskID           string         `json:"task_id"`
	Type             string         `json:"type"`
	Ready            int64          `json:"ready" doc:"tasks of these requirements that are ready, this one included"`
	Position         int64          `json:"position" doc:"in its line: 1, the next"`
	BlockedBy        []engine.Block `json:"blocked_by"`
	EstimatedStartAt handlers.Time  `json:"estimated_start_at" doc:"null: it depends on what nobody can foresee"`
}

// laneExplained says why nothing more of a lane runs.
type laneExplained struct {
	Lane  string     `json:"lane"`
	Heads []laneHead `json:"heads" doc:"by rank, twenty at most; empty where nothing waits in line"`
}

// explainLane asks the brain: 503 while nobody decides.
func explainLane(d *handlers.Deps, c *fiber.Ctx) error {
	lane, err := readLane(d, c)
	if err != nil {
		return err
	}
	cmd := d.Command(handlers.CallerOf(c))
	cmd.Look = &engine.Look{Heads: lane.Number}
	ctx, cancel := context.WithTimeout(c.UserContext(), lookPatience)
	defer cancel()
	answer, err := d.Door.Do(ctx, cmd)
	if err != nil {
		return err
	}
	out := laneExplained{Lane: lane.Name, Heads: []laneHead{}}
	for _, h := range answer.Looked.Heads {
		out.Heads = append(out.Heads, laneHead{
			TaskID: h.Task.ID.Text(models.TaskPrefix), Type: h.Type, Ready: h.Ready, Position: h.Why.Position, BlockedBy: handlers.List(h.Why.BlockedBy),
			EstimatedStartAt: handlers.Time(h.Why.EstimatedStart),
		})
	}
	return handlers.Answer(c, fiber.StatusOK, out)
}
