package ui

import (
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/gofiber/fiber/v2"

	"nightshift/handlers"
	"nightshift/models"
	"nightshift/templates"
)

func (p *pages) activity(c *fiber.Ctx) error {
	view := templates.ActivityView{Filter: map[string]string{}, Earlier: c.Query("cursor") != ""}
	ask := url.Values{"limit": {"50"}}
	for _, name := range []string{"action", "object", "actor", "cursor"} {
		value := strings.TrimSpace(c.Query(name))
		if value == "" || !handlers.Storable(value) || len(value) > 1000 {
			continue
		}
		if name != "cursor" {
			view.Filter[name] = value
		}
		ask.Set(name, value)
	}
	if email := view.Filter["actor"]; strings.Contains(email, "@") {
		user, err := p.People.UserByEmail(c.UserContext(), email)
		if err != nil {
			return err
		}
		if user != nil {
			ask.Set("actor", models.ID(user.ID).Text(models.UserPrefix))
		}
	}
	if err := p.audit(c, ask, &view); err != nil {
		return err
	}
	page, err := p.whole(c, "Activity", "/activity")
	if err != nil {
		return err
	}
	return show(c, fiber.StatusOK, templates.Activity(page, view))
}

// auditRow is a row of the audit as the API answers it.
type auditRow struct {
	ID    int64     `json:"id"`
	At    time.Time `json:"at"`
	Actor struct {
		Kind string `json:"kind"`
		ID   string `json:"id"`
	} `json:"actor"`
	Action  string  `json:"action"`
	Object  string  `json:"object"`
	Before  version `json:"before"`
	After   version `json:"after"`
	Reason  string  `json:"reason"`
	Request string  `json:"request_id"`
	IP      string  `json:"ip"`
}

func (p *pages) audit(c *fiber.Ctx, ask url.Values, view *templates.ActivityView) error {
	var found list[auditRow]
	if err := p.read(c, apiPath("audit")+"?"+ask.Encode(), &found); err != nil {
		return err
	}
	var actors []string
	for _, row := range found.Data {
		actors = append(actors, row.Actor.ID)
	}
	names, err := p.actorNames(c, actors)
	view.Next = found.Next
	for _, row := range found.Data {
		shown := templates.ActivityRow{
			ID: "audit-" + strconv.FormatInt(row.ID, 10), At: row.At, Who: names[row.Actor.ID], WhoID: row.Actor.ID, Action: row.Action, Object: row.Object,
			Path: objectPath(row.Action, row.Object), Reason: row.Reason, IP: row.IP, Request: row.Request,
		}
		if len(row.Before)+len(row.After) > 0 {
			shown.Changes = changesOf(row.Before, row.After)
		}
		view.Rows = append(view.Rows, shown)
	}
	return err
}

// objectPath is the page of what an audit row is about; empty where there is none.
func objectPath(action, object string) string {
	prefix, _, _ := strings.Cut(object, "_")
	noun, verb, _ := strings.Cut(action, ".")
	switch {
	case prefix == models.TaskPrefix:
		return templates.ObjectPath("/tasks", object)
	case prefix == models.WorkflowPrefix:
		return templates.ObjectPath("/workflows", object)
	case prefix == models.WorkerPrefix:
		return templates.ObjectPath("/workers", object)
	case prefix == models.SchedulePrefix && verb != "delete":
		return templates.ObjectPath("/schedules", object)
	case noun == "lane":
		return "/lanes"
	case noun == "environment":
		return "/environments"
	case noun == "api_key":
		return "/settings"
	}
	return ""
}
