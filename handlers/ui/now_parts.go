package ui

import (
	"strings"

	"github.com/a-h/templ"
	"github.com/gofiber/fiber/v2"

	"nightshift/models"
	"nightshift/templates"
)

// nowPart is a region of the first page: how it is read and drawn by itself.
type nowPart struct {
	name string
	read func(*fiber.Ctx, *templates.NowView) error
	draw func(templates.Page, templates.NowView) templ.Component
}

func (p *pages) nowParts() []nowPart {
	return []nowPart{
		{"states", p.readStates, func(f templates.Page, v templates.NowView) templ.Component { return templates.NowStates(f, v.States) }},
		{"tiles", p.readTiles, func(f templates.Page, v templates.NowView) templ.Component { return templates.NowTiles(f, v.Lanes) }},
		{"workflows", p.readFlows, func(f templates.Page, v templates.NowView) templ.Component {
			return templates.NowWorkflows(f, v.Workflows)
		}},
		{"dead", p.readDead, func(f templates.Page, v templates.NowView) templ.Component { return templates.NowDead(f, v.Dead) }},
		{"fleet", p.readFleet, func(f templates.Page, v templates.NowView) templ.Component { return templates.NowFleet(f, v.Workers) }},
		{"shares", p.readShares, func(f templates.Page, v templates.NowView) templ.Component { return templates.NowShares(f, v.Shares) }},
		{"next", p.readNext, func(f templates.Page, v templates.NowView) templ.Component {
			return templates.NowNext(f, v.Next, v.Scheduled)
		}},
		{"recent", p.readRecent, func(f templates.Page, v templates.NowView) templ.Component { return templates.NowRecent(f, v.Recent) }},
	}
}

// nowPart is the region of a name, nil for none.
func (p *pages) nowPart(name string) *nowPart {
	for _, part := range p.nowParts() {
		if part.name == name {
			return &part
		}
	}
	return nil
}

// happening puts an event into words.
func happening(e models.Event, names, workers map[models.ID]string) templates.Happening {
	_, verb, _ := strings.Cut(e.Name, ".")
	h := templates.Happening{At: e.At.Time(), Event: e.Name, Text: strings.ReplaceAll(verb, "_", " ")}
	if strings.HasPrefix(e.Name, "schedule.") {
		h.Text = strings.TrimSpace(h.Text + " by its schedule")
		if e.Task.IsZero() && !e.Schedule.IsZero() {
			h.Path, h.Subject = "/schedules", templates.Ref{ID: e.Schedule.Text(models.SchedulePrefix), Name: names[e.Schedule]}
			h.Text = strings.ReplaceAll(verb, "_", " ")
			if reason := strings.TrimPrefix(e.Reason, verb+"_"); reason != "" {
				h.Text += ": " + strings.ReplaceAll(reason, "_", " ")
			}
			return h
		}
	}
	if e.Task.IsZero() {
		h.Path, h.Subject = "/workflows", templates.Ref{ID: e.Workflow.Text(models.WorkflowPrefix), State: e.State}
		return h
	}
	h.Path = "/tasks"
	h.Subject = templates.Ref{ID: e.Task.Text(models.TaskPrefix), Name: names[e.Task], State: e.State}
	switch {
	case e.Class != "":
		h.Text += ": " + e.Class
	case verb == "started" && workers[e.Worker] != "":
		h.Text += " on " + workers[e.Worker]
	case e.Reason != "":
		h.Text += ": " + e.Reason
	}
	return h
}
