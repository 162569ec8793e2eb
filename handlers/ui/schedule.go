package ui

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gofiber/fiber/v2"

	"nightshift/handlers"
	"nightshift/models"
	"nightshift/scheduler/calendar"
	"nightshift/templates"
)

const (
	runRows     = 20 // runs and versions that the page of a schedule lists
	versionRows = 10
)

// scheduleName is the name or id in the path.
func scheduleName(c *fiber.Ctx) (string, error) { return handlers.PathParam(c, "id") }

func (p *pages) schedule(c *fiber.Ctx) error {
	name, err := scheduleName(c)
	if err != nil {
		return err
	}
	var s schedule
	if err := p.read(c, apiPath("schedules", name), &s); err != nil {
		return err
	}
	freezes, err := p.frozen(c)
	if err != nil {
		return err
	}
	view := describeSchedule(&s, p.Now(), freezes)
	if err := p.runs(c, &s, &view); err != nil {
		return err
	}
	if view.Versions, err = p.versions(c, &s, versionRows); err != nil {
		return err
	}
	if c.Query("fragment") == "schedule" {
		return show(c, fiber.StatusOK, templates.ScheduleRegion(p.fragment(c, "Schedule", "/schedules"), view))
	}
	page, err := p.whole(c, "Schedule", "/schedules")
	if err != nil {
		return err
	}
	page.Title = s.Name
	return show(c, fiber.StatusOK, templates.Schedule(page, view))
}

func describeSchedule(s *schedule, now models.Instant, freezes []calendar.Freeze) templates.ScheduleView {
	view := templates.ScheduleView{
		ScheduleRow: s.row(), Description: s.Description, RunbookURL: webURL(s.RunbookURL), Facts: s.facts(), Task: string(s.Task), Version: s.Version,
		LastSuccessAt: s.LastSuccessAt,
	}
	if len(s.Task) == 0 || string(s.Task) == "null" {
		view.Task = string(s.Workflow)
	}
	if s.LastRun != nil {
		view.LastFor, view.LastOutcome = s.LastRun.ScheduledFor, s.LastRun.Outcome
	}
	rule := s.rule()
	if s.Enabled && !rule.FromEnd {
		view.Next = preview(&rule, models.InstantOf(s.CreatedAt), now, 0, freezes)
	}
	return view
}

// webURL is an address that may be linked to, else nothing.
func webURL(text string) string {
	if strings.HasPrefix(text, "https://") || strings.HasPrefix(text, "http://") {
		return text
	}
	return ""
}

// facts are the rules of a schedule in words.
func (s *schedule) facts() []templates.Pair {
	var out []templates.Pair
	add := func(on bool, name, format string, args ...any) {
		if on {
			out = append(out, templates.Pair{Name: name, Value: fmt.Sprintf(format, args...)})
		}
	}
	words := func(text string) string { return strings.ReplaceAll(text, "_", " ") }
	add(s.Expression != "", "Expression", "%s", s.Expression)
	add(true, "Timezone", "%s", s.Timezone)
	add(s.Kind == "cron", "Clock changes", "%s a gap, run the %s pass", s.Gap, s.Fold)
	add(true, "If missed", "%s, after %d s", words(s.Misfire), s.Grace)
	add(s.Misfire == "catch_up", "Catch up", "the newest %d", s.CatchUp)
	add(true, "If the last still runs", "%s", words(s.Overlap))
	add(s.ExpiresIn > 0, "Expires", "not started within %d s", s.ExpiresIn)
	add(s.Partitions > 0, "Partitions", "%d", s.Partitions)
	add(s.Flexible > 0, "Flexible", "its work starts up to %d s later", s.Flexible)
	add(s.Within > 0, "Ends within", "%d s, else it is told", s.Within)
	add(s.Jitter > 0, "Jitter", "up to %d s", s.Jitter)
	add(s.MostFailures > 0, "Pauses after", "%d failures in a row", s.MostFailures)
	add(!s.StartAt.IsZero(), "Starts", "%s", s.StartAt.UTC().Format(time.RFC3339))
	add(!s.EndAt.IsZero(), "Ends", "%s", s.EndAt.UTC().Format(time.RFC3339))
	add(len(s.Exclude) > 0, "Left out", "%s", strings.Join(s.Exclude, ", "))
	add(s.Owner != "", "Owner", "%s", s.Owner)
	return out
}

// runs adds what became of the occurrences.
func (p *pages) runs(c *fiber.Ctx, s *schedule, view *templates.ScheduleView) error {
	var found list[struct {
		ID           string    `json:"id"`
		ScheduledFor time.Time `json:"scheduled_for"`
		Origin       string    `json:"origin"`
		Outcome      string    `json:"outcome"`
		Cause        string    `json:"cause"`
		Task         string    `json:"task_id"`
		Workflow     string    `json:"workflow_id"`
		State        string    `json:"result_state"`
		Late         float64   `json:"late_seconds"`
		FinishedAt   time.Time `json:"finished_at"`
	}]
	if err := p.read(c, listPath(c, apiPath("schedules", s.ID, "runs"), runRows), &found); err != nil {
		return err
	}
	zone, err := time.LoadLocation(s.Timezone)
	if err != nil {
		zone = time.UTC
	}
	for i := len(found.Data) - 1; i >= 0; i-- { // a run by hand is never late
		if r := found.Data[i]; r.Origin == "timer" {
			view.Late, view.Timed = r.Late, true
		}
	}
	for _, r := range found.Data {
		origin, _, _ := strings.Cut(r.Origin, ":")
		view.Runs = append(view.Runs, templates.RunRow{
			ID: r.ID, ScheduledFor: r.ScheduledFor, Local: localWords(r.ScheduledFor.In(zone), p.Now().Time()), Origin: origin,
			Outcome: r.Outcome, Cause: r.Cause, Task: templates.Ref{ID: r.Task}, Workflow: templates.Ref{ID: r.Workflow}, State: r.State,
			Late: lateOf(r.Origin, r.Late), FinishedAt: r.FinishedAt, Tone: runTone(r.Outcome, r.State),
		})
	}
	view.RunsNext, view.RunsEarlier = found.Next, c.Query("cursor") != ""
	return nil
}

// lateOf is how late a run was; one that people asked for came when they asked.
func lateOf(origin string, late float64) float64 {
	if origin != "timer" {
		return 0
	}
	return late
}

// version is a schedule as an edit left it: every field as JSON.
type version map[string]json.RawMessage

func (v version) text(name string) (text string) {
	_ = json.Unmarshal(v[name], &text) // empty for what is no text
	return text
}

func (v version) number() (n int64) {
	_ = json.Unmarshal(v["version"], &n) // the API wrote it
	return n
}

// versions are the newest versions, each with what it changed of the one before.
func (p *pages) versions(c *fiber.Ctx, s *schedule, most int) ([]templates.VersionRow, error) {
	var found list[version]
	if err := p.read(c, apiPath("schedules", s.ID, "versions")+"?limit="+strconv.Itoa(most+1), &found); err != nil {
		return nil, err
	}
	var actors []string
	for _, v := range found.Data {
		actors = append(actors, v.by())
	}
	names, err := p.actorNames(c, actors)
	if err != nil {
		return nil, err
	}
	var out []templates.VersionRow
	for i, v := range found.Data[:min(most, len(found.Data))] {
		row := templates.VersionRow{Version: v.number(), By: names[v.by()], Current: v.number() == s.Version}
		row.At, _ = time.Parse(time.RFC3339Nano, v.text("created_at"))
		if i+1 < len(found.Data) {
			row.Changes = changesOf(found.Data[i+1], v)
		}
		out = append(out, row)
	}
	return out, nil
}

func (v version) by() string {
	var actor models.Actor
	_ = json.Unmarshal(v["by"], &actor) // nobody, where the API says nothing
	return actor.ID
}

// changesOf are the fields in which two versions differ, by name.
func changesOf(before, after version) (out []templates.Change) {
	for _, name := range slices.Sorted(maps.Keys(after)) {
		switch name {
		case "version", "created_at", "by", "changed", "changes":
			continue
		}
		if !bytes.Equal(before[name], after[name]) {
			out = append(out, templates.Change{Name: strings.ReplaceAll(name, "_", " "), Before: pretty(before[name]), After: pretty(after[name])})
		}
	}
	return out
}

// actorNames are the people and keys of some ids, as this viewer may know them.
func (p *pages) actorNames(c *fiber.Ctx, ids []string) (map[string]string, error) {
	names, people := map[string]string{}, []models.ID{}
	for _, id := range ids {
		if _, known := names[id]; known {
			continue
		}
		names[id] = id
		if user, err := models.ParseID(models.UserPrefix, id); err == nil {
			people = append(people, user)
		}
	}
	users, err := p.People.Users(c.UserContext(), people)
	for _, u := range users {
		name := u.Email
		if u.Platform && !handlers.CallerOf(c).Platform {
			name = "an operator of the platform"
		}
		names[models.ID(u.ID).Text(models.UserPrefix)] = name
	}
	return names, err
}

// actOnSchedule is an action of the API on the schedule in the path.
func (p *pages) actOnSchedule(verb, text string) fiber.Handler {
	return func(c *fiber.Ctx) error {
		name, err := scheduleName(c)
		if err != nil {
			return err
		}
		return p.act(c, place(c, templates.ObjectPath("/schedules", name)), text, apiPath("schedules", name, verb), reasonOf(c))
	}
}

// runSchedule makes a run by hand, and says what became of it.
func (p *pages) runSchedule(c *fiber.Ctx) error {
	name, err := scheduleName(c)
	if err != nil {
		return err
	}
	to := place(c, templates.ObjectPath("/schedules", name))
	reply, err := p.call(c, fiber.MethodPost, apiPath("schedules", name, "trigger"), reasonOf(c))
	if err != nil {
		return done(c, to, "", err)
	}
	var run struct{ Outcome, Cause string }
	if err := reply.Into(&run); err != nil {
		return err
	}
	switch run.Outcome {
	case string(calendar.Dispatched):
		return done(c, to, "A run was made.", nil)
	case "":
		return done(c, to, "A run waits for the one before it.", nil)
	}
	return done(c, to, "", models.Errorf(models.StateConflict, "nothing runs, %s: %s", runWords(run.Outcome, ""), run.Cause))
}

// deleteSchedule removes a schedule; its runs' work goes on.
func (p *pages) deleteSchedule(c *fiber.Ctx) error {
	name, err := scheduleName(c)
	if err != nil {
		return err
	}
	to, reason := place(c, "/schedules"), reasonOf(c)
	if len(reason) == 0 {
		err = models.Invalid("body.reason", "is needed")
	} else {
		_, err = p.call(c, fiber.MethodDelete, apiPath("schedules", name), reason)
	}
	if err != nil {
		to = place(c, templates.ObjectPath("/schedules", name))
	}
	return done(c, to, "The schedule is gone; what its runs made goes on.", err)
}

// rollbackSchedule makes an earlier version the newest, unless somebody saved another one meanwhile.
func (p *pages) rollbackSchedule(c *fiber.Ctx) error {
	name, err := scheduleName(c)
	if err != nil {
		return err
	}
	body := reasonOf(c)
	body["version"] = numberOr(c.FormValue("to"))
	_, err = p.call(c, fiber.MethodPost, apiPath("schedules", name, "rollback"), body, fiber.HeaderIfMatch, quoted(c.FormValue("version")))
	return done(c, place(c, templates.ObjectPath("/schedules", name)), "Version "+handlers.Shorten(c.FormValue("to"), 20)+" is the newest again.", err)
}

// quoted is a version as If-Match writes it.
func quoted(version string) string {
	if _, err := strconv.ParseInt(version, 10, 64); err != nil {
		return `"0"` // which never stands
	}
	return `"` + version + `"`
}
