package api

import (
	"time"

	"github.com/gofiber/fiber/v2"

	"nightshift/handlers"
	"nightshift/models"
	"nightshift/models/postgres"
	"nightshift/scheduler/calendar"
	"nightshift/scheduler/engine"
	"nightshift/scheduler/forecast"
)

type moveRequest struct {
	MoveTo string               `json:"move_to" required:"true" doc:"as it was suggested: where the occurrence at the peak is to go; all others move by as much"`
	Reason handlers.Opt[string] `json:"reason" maxLength:"1000" doc:"kept in the audit"`
}

// MovedView is a schedule that was moved, or would be.
type MovedView struct {
	ScheduleView
	Peak      float64 `json:"peak" doc:"of the collision, before"`
	PeakAfter float64 `json:"peak_after"`
}

// applySuggestion moves a schedule to where the forecast would have it.
func applySuggestion(d *handlers.Deps, c *fiber.Ctx) error {
	var in moveRequest
	dry, err := handlers.DryRun(c)
	if err != nil {
		return err
	}
	if err := handlers.Bind(c, &in); err != nil {
		return err
	}
	to, err := handlers.ParseTime("body.move_to", in.MoveTo)
	if err != nil {
		return err
	}
	if err := checkReason(in.Reason.Or(""), false); err != nil {
		return err
	}
	var would MovedView
	move := func(row *postgres.ScheduleRow) (*engine.Configure, error) {
		before := row.Rule
		col, err := moveRule(d, c, row, to)
		if err != nil {
			return nil, err
		}
		would = MovedView{viewSchedule(handlers.CallerOf(c).Environment, d.Now())(*row), rounded(col.Peak), rounded(col.Move.PeakAfter)}
		return &engine.Configure{Schedule: &row.Schedule, Action: "schedule.move", Reason: in.Reason.Or("")}, checkRule(&row.Schedule, before, d.Now())
	}
	if dry {
		row, err := readSchedule(d, c)
		if err != nil {
			return err
		}
		if err := handlers.IfMatch(c).Fits(row.Version); err != nil {
			return err
		}
		if _, err := move(&row); err != nil {
			return err
		}
		return handlers.Answer(c, fiber.StatusOK, would)
	}
	id, err := editSchedule(d, c, move)
	if err != nil {
		return err
	}
	caller := handlers.CallerOf(c)
	row, err := d.World.Schedule(c.UserContext(), caller.Scope(), caller.Env, id.Text(models.SchedulePrefix))
	if err != nil {
		return err
	}
	handlers.SetETag(c, row.Version)
	would.ScheduleView = viewSchedule(caller.Environment, d.Now())(row)
	return handlers.Answer(c, fiber.StatusOK, would)
}

// moveRule gives a schedule the rule that brings one of its occurrences to a moment, where the forecast would suggest that.
func moveRule(d *handlers.Deps, c *fiber.Ctx, row *postgres.ScheduleRow, to models.Instant) (*forecast.Collision, error) {
	const field = "body.move_to"
	now := d.Now()
	if to <= now {
		return nil, models.Invalid(field, "lies in the past")
	}
	if to > now+mostHours*hour {
		return nil, models.Invalid(field, "lies outside of what was suggested: no forecast goes further than %d hours", mostHours)
	}
	o, err := foreseen(d, c, max(presetHours*hour, to-now+hour))
	if err != nil {
		return nil, err
	}
	table, err := calendar.Of(&row.Rule, row.CreatedAt)
	if err != nil {
		return nil, err
	}
	table.Freezes = calendar.FreezesOf(row.Freezes)
	from, runs := table.Nearest(to.Time())
	if !runs || row.Rule.FromEnd || row.Rule.Gathers() {
		_, err := calendar.Move(row.Rule, row.CreatedAt, 1)
		if err == nil {
			return nil, models.Invalid(field, "lies outside of what was suggested: the schedule does not run any more")
		}
		return nil, models.Invalid(field, "%s", detailOf(err))
	}
	by := to.Time().Sub(from)
	if by%time.Minute != 0 {
		return nil, models.Invalid(field, "lies outside of what was suggested: it is not a whole number of minutes from an occurrence of the schedule, the nearest is %s", from.UTC().Format(time.RFC3339))
	}
	minutes := int(by / time.Minute)
	moved, err := calendar.Move(row.Rule, row.CreatedAt, minutes)
	if err != nil {
		return nil, models.Invalid(field, "%s", detailOf(err))
	}
	col, why := o.scene().Judge(row.ID, models.InstantOf(from), minutes)
	if col == nil {
		return nil, models.Invalid(field, "lies outside of what was suggested: %s", refusedMove[why])
	}
	row.Rule = moved
	if table, err = calendar.Of(&row.Rule, row.CreatedAt); err != nil {
		return nil, err
	}
	table.Freezes = calendar.FreezesOf(row.Freezes)
	if at, ok := table.NextRun(to.Time().Add(-1)); !ok || !at.At.Equal(to.Time()) {
		return nil, models.Invalid(field, "the schedule's clock changes between its occurrence and there, so that no expression brings it there")
	}
	return col, nil
}

var refusedMove = map[forecast.Why]string{
	forecast.Alone:    "the schedule takes part in no collision that is foreseen",
	forecast.Fixed:    "the schedule can't be moved so: it places itself, or what it says can't be said of there",
	forecast.TooFar:   "suggestions move a schedule by at most half an hour, and never so far that it reaches its next run",
	forecast.NoBetter: "there it would lower no peak",
}

// detailOf is what an error says.
func detailOf(err error) string {
	if e, ok := err.(*models.Error); ok { //nolint:errorlint // the calendar's own, never wrapped
		return e.Detail
	}
	return err.Error()
}
