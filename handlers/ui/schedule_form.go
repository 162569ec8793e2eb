package ui

import (
	"cmp"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/gofiber/fiber/v2"

	"nightshift/handlers"
	"nightshift/models"
	"nightshift/scheduler/calendar"
	"nightshift/templates"
)

// newSchedule offers an empty editor, or a copy of another schedule.
func (p *pages) newSchedule(c *fiber.Ctx) error {
	form := templates.ScheduleForm{JSON: c.Query("as") == "json", Values: map[string]string{
		"kind": "cron", "timezone": "UTC", "dst_gap": "shift", "dst_overlap": "first", "misfire_policy": "run_once", "misfire_grace_seconds": "60",
		"catch_up_limit": "100", "overlap_policy": "skip", "enabled": "yes", "json": exampleSchedule, "work": "task",
	}}
	if tenant, err := p.Directory.TenantByNumber(c.UserContext(), handlers.CallerOf(c).Tenant); err == nil {
		form.Values["timezone"] = tenant.Timezone
	}
	if from := c.Query("from"); from != "" {
		copied, err := p.formOf(c, from)
		if err != nil {
			return err
		}
		form.Values = copied.Values
		form.Values["name"] += "-copy"
	}
	return p.showForm(c, fiber.StatusOK, form)
}

const exampleSchedule = `{
  "name": "nightly-report",
  "kind": "cron",
  "expression": "0 2 * * *",
  "timezone": "UTC",
  "task": {"type": "report.write", "payload": {"day": "{{scheduled_for}}"}}
}`

// formOf is the editor for a schedule that stands.
func (p *pages) formOf(c *fiber.Ctx, name string) (form templates.ScheduleForm, err error) {
	reply, err := p.call(c, fiber.MethodGet, apiPath("schedules", name), nil)
	if err != nil {
		return form, err
	}
	var s schedule
	if err := reply.Into(&s); err != nil {
		return form, err
	}
	form = templates.ScheduleForm{ID: s.ID, Version: strconv.FormatInt(s.Version, 10), Values: s.values()}
	form.JSON = c.Query("as") == "json"
	form.Values["json"], err = wholeJSON(reply.Body)
	return form, err
}

func (p *pages) editSchedule(c *fiber.Ctx) error {
	name, err := scheduleName(c)
	if err != nil {
		return err
	}
	form, err := p.formOf(c, name)
	if err != nil {
		return err
	}
	return p.showForm(c, fiber.StatusOK, form)
}

func (p *pages) showForm(c *fiber.Ctx, status int, form templates.ScheduleForm) error {
	lanes, _, err := p.lanesWithStats(c)
	if err != nil {
		return err
	}
	for _, lane := range lanes {
		form.Lanes = append(form.Lanes, lane.Name)
	}
	form.Zones = calendar.Zones()
	if list, _, err := p.freezesOf(c, handlers.CallerOf(c).Environment); err == nil { // a viewer without the right sees none
		form.Freezes = showFreezes(list, p.Now())
	}
	name := "New schedule"
	if form.ID != "" {
		name = "Edit schedule"
	}
	page, err := p.whole(c, name, "/schedules")
	if err != nil {
		return err
	}
	return show(c, status, templates.ScheduleEditor(page, form))
}

// sent is the editor as it came back, with the body that it asks for.
func sent(c *fiber.Ctx) (form templates.ScheduleForm, body any, err error) {
	form = templates.ScheduleForm{JSON: c.FormValue("as") == "json", Version: c.FormValue("version"), Values: typed(c.FormValue)}
	if form.JSON {
		form.Values["json"] = c.FormValue("json")
		text, err := jsonField(c, "json")
		if err == nil && text == nil {
			err = models.Invalid("body.json", "a schedule is needed")
		}
		return form, text, err
	}
	body, err = bodyOf(form.Values)
	return form, body, err
}

func (p *pages) createSchedule(c *fiber.Ctx) error {
	form, body, err := sent(c)
	var reply *handlers.Reply
	if err == nil {
		if written, is := body.(fields); is && form.Values["enabled"] == "" {
			written["enabled"] = false
		}
		reply, err = p.call(c, fiber.MethodPost, apiPath("schedules"), body)
	}
	if err != nil {
		return p.refuseForm(c, form, err)
	}
	return done(c, place(c, templates.ObjectPath("/schedules", lastPart(reply.Location))), "The schedule is there.", nil)
}

func (p *pages) saveSchedule(c *fiber.Ctx) error {
	name, err := scheduleName(c)
	if err != nil {
		return err
	}
	form, body, err := sent(c)
	form.ID = name
	if err == nil {
		_, err = p.call(c, fiber.MethodPatch, apiPath("schedules", name), body, fiber.HeaderIfMatch, quoted(form.Version))
	}
	if err != nil {
		return p.refuseForm(c, form, err)
	}
	return done(c, place(c, templates.ObjectPath("/schedules", name)), "The schedule is saved as a new version.", nil)
}

// refuseForm shows the editor again, as it was filled in, with what is wrong.
func (p *pages) refuseForm(c *fiber.Ctx, form templates.ScheduleForm, err error) error {
	switch code := models.CodeOf(err); {
	case !understood(err) && code != models.InvalidJSON, code == models.NotFound:
		return err
	case code == models.Stale:
		return p.overtaken(c, form)
	case form.JSON:
		form.Wrong = map[string]string{"json": placed(err)}
	default:
		form.Wrong = scheduleFaults(err)
	}
	return p.showForm(c, fiber.StatusUnprocessableEntity, form)
}

// placed are the sentences of a refusal with their places in the JSON.
func placed(err error) string {
	var known *models.Error
	if !errors.As(err, &known) || len(known.Fields) == 0 {
		return sentence(detail(err))
	}
	var texts []string
	for _, f := range known.Fields {
		at := strings.TrimPrefix(f.Location, "body.")
		if at == "json" || at == "body" {
			texts = append(texts, sentence(f.Message))
			continue
		}
		texts = append(texts, at+": "+f.Message+".")
	}
	return strings.Join(texts, " ")
}

// overtaken tells what others saved since the editor was opened, and lets it be saved over that.
func (p *pages) overtaken(c *fiber.Ctx, form templates.ScheduleForm) error {
	var s schedule
	if err := p.read(c, apiPath("schedules", form.ID), &s); err != nil {
		return err
	}
	newer, err := p.versions(c, &s, versionRows)
	if err != nil {
		return err
	}
	began, _ := strconv.ParseInt(form.Version, 10, 64) // none: all are newer
	for _, v := range newer {
		if v.Version > began {
			form.Theirs = append(form.Theirs, v)
		}
	}
	form.Version = strconv.FormatInt(s.Version, 10)
	return p.showForm(c, fiber.StatusPreconditionFailed, form)
}

// seconds is a number as somebody types it, 0 for what is none.
func seconds(text string) float64 {
	n, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
	if err != nil || n != n || n < 0 || n > 1e9 {
		return 0
	}
	return n
}

// ruleTyped is the rule of a half-filled editor; missing says that it does not say yet when.
func ruleTyped(values map[string]string) (rule models.ScheduleRule, missing bool) {
	zone := strings.TrimSpace(values["timezone"])
	at := func(name string) models.Instant {
		parsed, err := time.Parse(time.RFC3339, moment(values[name], zone))
		if err != nil {
			return 0
		}
		return models.InstantOf(parsed)
	}
	rule = models.ScheduleRule{
		Kind: values["kind"], Timezone: zone, Gap: values["dst_gap"], Fold: values["dst_overlap"], StartAt: at("start_at"), EndAt: at("end_at"),
		Exclude: strings.Fields(strings.ReplaceAll(values["calendar_exclude"], ",", " ")), Misfire: "run_once", GraceSeconds: 60, CatchUp: 100, Overlap: "skip",
	}
	switch rule.Kind {
	case "cron":
		rule.Expression = strings.TrimSpace(values["expression"])
		return rule, rule.Expression == ""
	case "interval":
		rule.EverySeconds, _ = strconv.ParseInt(strings.TrimSpace(values["every_seconds"]), 10, 64) // 0 is refused by the calendar
		rule.FromEnd = values["interval_from"] == "end"
		return rule, values["every_seconds"] == ""
	case "once":
		rule.RunAt = at("run_at")
		return rule, rule.RunAt == 0
	case "event":
		rule.Event = &models.EventRule{
			Name: strings.TrimSpace(values["event_name"]), DebounceSeconds: seconds(values["event_debounce_seconds"]), MaxWaitSeconds: seconds(values["event_max_wait_seconds"]),
			MaxEvents: int32(seconds(values["event_max_events"])),
		}
		return rule, rule.Event.Name == ""
	case "drain":
		rule.Drain = &models.DrainRule{
			Queue: strings.TrimSpace(values["drain_queue"]), MaxItems: int32(cmp.Or(seconds(values["drain_max_items"]), 1000)), BatchSize: int32(cmp.Or(seconds(values["drain_batch_size"]), 100)),
		}
		rule.Partitions = int32(seconds(values["partitions"]))
		return rule, rule.Drain.Queue == ""
	}
	return rule, false
}

// readable says that nothing of what was typed would be refused by the database.
func readable(values map[string]string) bool {
	return handlers.Storable(values["expression"] + values["timezone"] + values["event_name"] + values["drain_queue"])
}

// leastInterval is how close two runs of a schedule may lie.
func (p *pages) leastInterval(c *fiber.Ctx) time.Duration {
	quotas, err := p.Directory.Quotas(c.UserContext(), handlers.CallerOf(c).Tenant)
	if least := quotas.MinIntervalSeconds; err == nil && least != nil {
		return time.Duration(min(max(*least, 1), int64(50*365*24*time.Hour/time.Second))) * time.Second
	}
	return time.Second // an edit is judged when it is saved
}

// alsoIn adds the tenant's own time to the next runs of a schedule whose clock shows another one.
func alsoIn(view *templates.PreviewView, name string, now time.Time) {
	zone, err := calendar.Zone(name)
	if err != nil || zone == time.UTC || name == view.Zone {
		return // UTC stands beside each anyway
	}
	for i := range view.Rows {
		view.Rows[i].Tenant = localWords(view.Rows[i].At.In(zone), now)
	}
}

// previewSchedule draws when the rule of a half-filled editor would fire.
func (p *pages) previewSchedule(c *fiber.Ctx) error {
	values := typed(func(name string, _ ...string) string { return c.Query(name) })
	rule, missing := ruleTyped(values)
	view := templates.PreviewView{}
	switch {
	case !readable(values):
		view.Wrong = "This can't be read."
	case missing:
		view.Words = "Say when, and the next runs appear here."
	default:
		freezes, err := p.frozen(c)
		if err != nil {
			return err
		}
		view = preview(&rule, p.Now(), p.Now(), p.leastInterval(c), freezes)
		if tenant, err := p.Directory.TenantByNumber(c.UserContext(), handlers.CallerOf(c).Tenant); err == nil {
			alsoIn(&view, tenant.Timezone, p.Now().Time())
		}
	}
	return show(c, fiber.StatusOK, templates.SchedulePreview(p.fragment(c, "", "/schedules"), view))
}
