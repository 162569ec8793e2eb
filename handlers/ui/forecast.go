package ui

import (
	"cmp"
	"slices"
	"time"

	"github.com/gofiber/fiber/v2"

	"nightshift/handlers"
	"nightshift/models"
	"nightshift/scheduler/calendar"
	"nightshift/templates"
)

// foreseen is what a page shows of the API's forecast.
type foreseen struct {
	Slots []struct {
		At       time.Time `json:"at"`
		P50      float64   `json:"running_p50"`
		P90      float64   `json:"running_p90"`
		Capacity int64     `json:"capacity"`
		Who      []string  `json:"schedules"`
	} `json:"slots"`
	Collisions []struct {
		From       time.Time `json:"from"`
		To         time.Time `json:"to"`
		Schedules  []string  `json:"schedules"`
		Peak       float64   `json:"peak"`
		Over       bool      `json:"over_capacity"`
		Suggestion *struct {
			Schedule  string    `json:"schedule_id"`
			MoveTo    time.Time `json:"move_to"`
			PeakAfter float64   `json:"peak_after"`
		} `json:"suggestion"`
	} `json:"collisions"`
}

const mostMeetings = 4 // collisions that the page shows, the highest

// forecast is the fragment of the day ahead. Lanes are added up.
func (p *pages) forecast(c *fiber.Ctx) error {
	var f foreseen
	if err := p.read(c, apiPath("schedules", "forecast"), &f); err != nil {
		return err
	}
	view := templates.ForecastView{From: p.Now().Time()}
	for _, s := range f.Slots {
		if n := len(view.Slots); n == 0 || !view.Slots[n-1].At.Equal(s.At) {
			view.Slots = append(view.Slots, templates.ForecastSlot{At: s.At})
		}
		last := &view.Slots[len(view.Slots)-1]
		last.P50, last.P90 = last.P50+s.P50, last.P90+s.P90
		view.Capacity = max(view.Capacity, s.Capacity)
	}
	for _, x := range f.Collisions {
		row := templates.CollisionRow{From: x.From, To: x.To, Peak: x.Peak, Over: x.Over, Count: len(x.Schedules)}
		if s := x.Suggestion; s != nil {
			row.ID, row.MoveTo, row.PeakAfter = s.Schedule, s.MoveTo, s.PeakAfter
		}
		view.Collisions = append(view.Collisions, row)
	}
	slices.SortStableFunc(view.Collisions, func(a, b templates.CollisionRow) int { return cmp.Compare(b.Peak, a.Peak) })
	view.More = max(0, len(view.Collisions)-mostMeetings)
	view.Collisions = view.Collisions[:len(view.Collisions)-view.More]
	for i := range view.Collisions {
		if err := p.nameMove(c, &view.Collisions[i]); err != nil {
			return err
		}
	}
	slices.SortStableFunc(view.Collisions, func(a, b templates.CollisionRow) int { return a.From.Compare(b.From) })
	return show(c, fiber.StatusOK, templates.ForecastCard(p.fragment(c, "Schedules", "/schedules"), view))
}

// nameMove finds the name of the schedule that is to be moved; one that went meanwhile is not offered.
func (p *pages) nameMove(c *fiber.Ctx, row *templates.CollisionRow) error {
	if row.ID == "" {
		return nil
	}
	caller := handlers.CallerOf(c)
	s, err := p.World.Schedule(c.UserContext(), caller.Scope(), caller.Env, row.ID)
	if models.CodeOf(err) == models.NotFound {
		row.ID = ""
		return nil
	}
	row.Name = s.Name
	return err
}

// moveSchedule applies a suggestion.
func (p *pages) moveSchedule(c *fiber.Ctx) error {
	name, err := scheduleName(c)
	if err != nil {
		return err
	}
	body := reasonOf(c)
	body["move_to"] = c.FormValue("move_to")
	return p.act(c, place(c, "/schedules"), "The schedule is moved; its occurrences all by as much.", apiPath("schedules", name, "apply-suggestion"), body)
}

// nearby is how far from its next run a quieter time is looked for: as far as suggestions move a schedule.
const nearby = 30 * time.Minute

// quieter is the fragment of the editor that says what is foreseen for when its rule runs next.
func (p *pages) quieter(c *fiber.Ctx) error {
	values := typed(func(name string, _ ...string) string { return c.Query(name) })
	rule, missing := ruleTyped(values)
	view := templates.QuieterView{}
	if table, err := calendar.Of(&rule, p.Now()); err == nil && !missing && readable(values) && !rule.Gathers() {
		if o, ok := table.NextRun(p.Now().Time()); ok && o.At.Sub(p.Now().Time()) < 24*time.Hour {
			var f foreseen
			if err := p.read(c, apiPath("schedules", "forecast"), &f); err != nil {
				return err
			}
			view = f.around(o.At.UTC(), p.Now().Time(), c.Query("id"))
		}
	}
	return show(c, fiber.StatusOK, templates.Quieter(view))
}

// around says what is foreseen at a moment, and where near it least is. What a schedule asks for by itself is left out.
func (f *foreseen) around(at, now time.Time, own string) templates.QuieterView {
	const step = 5 * time.Minute
	busy := map[time.Time]float64{}
	view := templates.QuieterView{At: at}
	for _, s := range f.Slots {
		if view.Capacity = max(view.Capacity, s.Capacity); len(s.Who) != 1 || s.Who[0] != own {
			busy[s.At.UTC()] += s.P90
		}
	}
	for _, x := range f.Collisions {
		view.Over = view.Over || x.Over && !at.Before(x.From) && at.Before(x.To)
	}
	view.Peak = busy[at.Truncate(step)]
	view.Better, view.Least = at, view.Peak
	for by := step; by <= nearby; by += step { // the nearest of those that are as quiet
		for _, other := range []time.Time{at.Add(-by), at.Add(by)} {
			if n := busy[other.Truncate(step)]; n < view.Least && other.After(now) {
				view.Better, view.Least = other, n
			}
		}
	}
	return view
}
