package ui

import (
	"fmt"
	"maps"
	"time"

	"github.com/gofiber/fiber/v2"

	"nightshift/models"
	"nightshift/scheduler/calendar"
	"nightshift/templates"
)

// backfill asks for a range of the past, and says how many occurrences it has before any is made.
func (p *pages) backfill(c *fiber.Ctx) error {
	name, err := scheduleName(c)
	if err != nil {
		return err
	}
	var s schedule
	if err := p.read(c, apiPath("schedules", name), &s); err != nil {
		return err
	}
	view := templates.BackfillView{ID: s.ID, Name: s.Name, Words: s.words(), Timezone: s.Timezone, Values: map[string]string{"overlap": s.Overlap}}
	status := fiber.StatusOK
	if c.Query("from")+c.Query("to") != "" {
		for _, field := range []string{"from", "to", "overlap"} {
			view.Values[field] = c.Query(field)
		}
		body := rangeBody(view.Values, s.Timezone)
		body["dry_run"] = true
		reply, err := p.call(c, fiber.MethodPost, apiPath("schedules", s.ID, "backfill"), body)
		switch {
		case err != nil && !understood(err):
			return err
		case err != nil:
			status, view.Wrong = fiber.StatusUnprocessableEntity, faults(err)
		default:
			view.Counted = true
			if err := reply.Into(&struct{ Matched *int64 }{&view.Matched}); err != nil {
				return err
			}
			freezes, err := p.frozen(c)
			if err != nil {
				return err
			}
			view.Some = s.between(fmt.Sprint(body["from"]), fmt.Sprint(body["to"]), p.Now(), freezes)
		}
	}
	page, err := p.whole(c, "Backfill", "/schedules")
	if err != nil {
		return err
	}
	return show(c, status, templates.Backfill(page, view))
}

// between are the first occurrences of a range.
func (s *schedule) between(from, to string, now models.Instant, freezes []calendar.Freeze) (out []templates.NextRun) {
	rule := s.rule()
	table, err := calendar.Of(&rule, models.InstantOf(s.CreatedAt))
	begin, wrong := time.Parse(time.RFC3339, from)
	end, alsoWrong := time.Parse(time.RFC3339, to)
	if err != nil || wrong != nil || alsoWrong != nil { // the API has read them
		return nil
	}
	table.Freezes = freezes
	list, _ := table.Between(begin.Add(-1), end, nextRuns)
	for _, o := range list {
		out = append(out, templates.NextRun{At: o.At, Local: localWords(o.At, now.Time()), Note: noteOf(o)})
	}
	return out
}

func rangeBody(values map[string]string, zone string) fields {
	body := fields{"from": moment(values["from"], zone), "to": moment(values["to"], zone)}
	if values["overlap"] != "" {
		body["overlap"] = values["overlap"]
	}
	return body
}

func (p *pages) startBackfill(c *fiber.Ctx) error {
	name, err := scheduleName(c)
	if err != nil {
		return err
	}
	to := place(c, templates.ObjectPath("/schedules", name))
	var s schedule
	if err := p.read(c, apiPath("schedules", name), &s); err != nil {
		return done(c, to, "", err)
	}
	values := map[string]string{"from": c.FormValue("from"), "to": c.FormValue("to"), "overlap": c.FormValue("overlap")}
	body := reasonOf(c)
	maps.Copy(body, rangeBody(values, s.Timezone))
	reply, err := p.call(c, fiber.MethodPost, apiPath("schedules", name, "backfill"), body)
	if err != nil {
		return done(c, to, "", err)
	}
	var made struct {
		Matched int64 `json:"matched"`
	}
	if err := reply.Into(&made); err != nil {
		return err
	}
	return done(c, to, words(made.Matched, "run is made up.", "runs are made up: what became of each stands in the list."), nil)
}
