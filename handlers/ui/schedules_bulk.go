package ui

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/gofiber/fiber/v2"

	"nightshift/handlers"
	"nightshift/models"
	"nightshift/templates"
)

const (
	mostTicked = 500  // schedules that one form names
	mostBulk   = 1000 // that one press of a button reaches
)

// scheduleFilter is which schedules the page lists: a part of the name, the kind, and whether they are on.
func scheduleFilter(value func(string, ...string) string) map[string]string {
	out := map[string]string{}
	for _, name := range []string{"q", "kind", "state"} {
		if text := strings.TrimSpace(value(name)); text != "" && handlers.Storable(text) && len(text) <= 128 {
			out[name] = text
		}
	}
	return out
}

// askedSchedules is a filter of the page as the API takes it.
func askedSchedules(filter map[string]string) url.Values {
	out := url.Values{}
	for _, name := range []string{"q", "kind"} {
		if filter[name] != "" {
			out.Set(name, filter[name])
		}
	}
	switch filter["state"] {
	case "on":
		out.Set("enabled", "true")
	case "paused":
		out.Set("enabled", "false")
	}
	return out
}

// countSchedules says what pausing or resuming all that match would reach now.
func (p *pages) countSchedules(c *fiber.Ctx) error {
	filter := scheduleFilter(c.Query)
	var counts [2]int64
	for i, state := range []string{"on", "paused"} {
		if filter["state"] != "" && filter["state"] != state {
			continue
		}
		ask := askedSchedules(filter)
		ask.Set("enabled", strconv.FormatBool(i == 0))
		ask.Set("count", "true")
		ask.Set("limit", "1")
		var found struct {
			Total struct {
				Value int64 `json:"value"`
			} `json:"total"`
		}
		if err := p.read(c, apiPath("schedules")+"?"+ask.Encode(), &found); err != nil {
			return err
		}
		counts[i] = found.Total.Value
	}
	text := "Now: " + words(counts[0], "schedule would be paused", "schedules would be paused") + ", " + words(counts[1], "resumed.", "resumed.")
	return show(c, fiber.StatusOK, templates.DeadCount(text))
}

// bulkSchedules pauses or resumes the schedules that were ticked, or all that match.
func (p *pages) bulkSchedules(c *fiber.Ctx) error {
	filter, verb := scheduleFilter(c.FormValue), c.FormValue("do")
	to := frame(c, "", "").URL("/schedules", "q", filter["q"], "kind", filter["kind"], "state", filter["state"])
	if verb != "pause" && verb != "resume" {
		return done(c, to, "", models.Errorf(models.ValidationFailed, "say whether to pause or to resume"))
	}
	ids, err := p.ticked(c, filter, verb)
	if err != nil {
		return done(c, to, "", err)
	}
	failed, first := 0, error(nil)
	for _, id := range ids {
		_, err := p.call(c, fiber.MethodPost, apiPath("schedules", id, verb), reasonOf(c))
		switch {
		case err == nil:
		case !understood(err):
			return err
		default:
			if failed++; first == nil {
				first = err
			}
		}
	}
	text := words(int64(len(ids)-failed), "schedule is", "schedules are") + map[string]string{"pause": " paused.", "resume": " resumed."}[verb]
	if failed > 0 {
		return done(c, to, "", models.Errorf(models.StateConflict, "%s %d could not be reached: %s", text, failed, detail(first)))
	}
	return done(c, to, text, nil)
}

// ticked are the ids of the schedules that the form names. Of all that match, those that stand as asked already are left alone.
func (p *pages) ticked(c *fiber.Ctx, filter map[string]string, verb string) (ids []string, err error) {
	if c.FormValue("all") == "" {
		for _, value := range c.Request().PostArgs().PeekMulti("id") {
			ids = append(ids, string(value))
		}
		slices.Sort(ids)
		if ids = slices.Compact(ids); len(ids) == 0 || len(ids) > mostTicked {
			return nil, models.Errorf(models.ValidationFailed, "tick from 1 to %d schedules first", mostTicked)
		}
		return ids, nil
	}
	stands := map[string]string{"pause": "on", "resume": "paused"}[verb]
	if filter["state"] != "" && filter["state"] != stands {
		return nil, models.Errorf(models.ValidationFailed, "none of those that match is to be %sd", verb)
	}
	ask := askedSchedules(filter)
	ask.Set("enabled", strconv.FormatBool(stands == "on"))
	ask.Set("limit", fmt.Sprint(handlers.PageMost))
	for {
		var found list[schedule]
		if err := p.read(c, apiPath("schedules")+"?"+ask.Encode(), &found); err != nil {
			return nil, err
		}
		for i := range found.Data {
			ids = append(ids, found.Data[i].ID)
		}
		if len(ids) > mostBulk || found.Next != "" && len(ids) == mostBulk {
			return nil, models.Errorf(models.ValidationFailed, "more than %d schedules match: narrow the filter, or pause the environment", mostBulk)
		}
		if found.Next == "" {
			return ids, nil
		}
		ask.Set("cursor", found.Next)
	}
}
