package ui

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/gofiber/fiber/v2"

	"nightshift/handlers"
	"nightshift/models"
	"nightshift/scheduler/engine"
	"nightshift/templates"
)

// laneWords are the settings of a lane that its form writes as they are; an empty one is none.
var laneWords = []string{"description", "owner", "runbook_url"}

// laneNumbers are those that are numbers.
var laneNumbers = []string{"weight", "max_concurrent", "high_water", "max_hold_seconds"}

// laneLists are those that are words with commas.
var laneLists = []string{"task_types", "yields_to"}

func (p *pages) lane(c *fiber.Ctx) error { return p.showLane(c, fiber.StatusOK, nil) }

// showLane is the page of a lane; a refused edit stands in its form as it was typed.
func (p *pages) showLane(c *fiber.Ctx, status int, refused error) error {
	name, err := handlers.PathParam(c, "name")
	if err != nil {
		return err
	}
	reply, err := p.call(c, fiber.MethodGet, apiPath("lanes", name), nil)
	if err != nil {
		return err
	}
	set := map[string]json.RawMessage{}
	if err := reply.Into(&set); err != nil {
		return err
	}
	view := templates.LaneView{Version: strings.Trim(reply.ETag, `"`), Values: map[string]string{}, Wrong: faults(refused)}
	if view.LaneRow, err = p.laneRow(c, name); err != nil {
		return err
	}
	p.laneHeads(c, name, &view)
	for _, field := range slices.Concat(laneNumbers, laneLists, laneWords, []string{"elastic", "open_windows"}) {
		if view.Values[field] = settingText(set[field]); refused != nil {
			view.Values[field] = strings.TrimSpace(c.FormValue(field))
		}
	}
	view.Facts = laneFacts(set)
	page, err := p.whole(c, "Lane", "/lanes")
	if err != nil {
		return err
	}
	page.Title = name
	return show(c, status, templates.Lane(page, view))
}

// laneRow is the lane as the list shows it.
func (p *pages) laneRow(c *fiber.Ctx, name string) (templates.LaneRow, error) {
	rows, err := p.laneRows(c)
	for i := range rows {
		if rows[i].Name == name {
			return rows[i], err
		}
	}
	if err == nil {
		err = models.Errorf(models.NotFound, "there is no lane %q here", name)
	}
	return templates.LaneRow{}, err
}

// laneHeads asks the brain what the next tasks wait for; without one the page says so.
func (p *pages) laneHeads(c *fiber.Ctx, name string, view *templates.LaneView) {
	var found struct {
		Heads []struct {
			ID    string         `json:"task_id"`
			Type  string         `json:"type"`
			Ready int            `json:"ready"`
			Why   []engine.Block `json:"blocked_by"`
		} `json:"heads"`
	}
	if err := p.read(c, apiPath("lanes", name, "explain"), &found); err != nil {
		view.Unknown = true
		return
	}
	for _, h := range found.Heads {
		head := templates.LaneHead{ID: h.ID, Type: h.Type, Ready: h.Ready}
		for _, block := range h.Why {
			head.Why = append(head.Why, templates.Reason{Code: block.Reason, Detail: sentence(block.Detail)})
		}
		view.Heads = append(view.Heads, head)
	}
}

// settingText is a setting as its form shows it: lists of words with commas, what else is no text as JSON.
func settingText(raw json.RawMessage) string {
	var words []string
	if json.Unmarshal(raw, &words) == nil {
		return strings.Join(words, ", ")
	}
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text
	}
	return string(raw)
}

// laneFacts are the settings that are set.
func laneFacts(set map[string]json.RawMessage) (out []templates.Pair) {
	for _, f := range []struct{ field, name string }{
		{"kind", "Kind"},
		{"weight", "Weight"},
		{"max_concurrent", "Runs at once, at most"},
		{"high_water", "High-water mark"},
		{"task_types", "Takes the types"},
		{"elastic", "Elastic"},
		{"yields_to", "Yields to"},
		{"max_hold_seconds", "Held at most, in seconds"},
		{"open_windows", "Open windows"},
		{"defaults", "Defaults"},
		{"description", "Description"},
		{"owner", "Owner"},
		{"runbook_url", "Runbook"},
	} {
		if text := settingText(set[f.field]); text != "" && text != "null" && text != "false" && text != "[]" {
			out = append(out, templates.Pair{Name: f.name, Value: text})
		}
	}
	return out
}

// editLane saves the form, unless somebody changed the lane since it was drawn.
func (p *pages) editLane(c *fiber.Ctx) error {
	name, err := handlers.PathParam(c, "name")
	if err != nil {
		return err
	}
	windows, err := jsonField(c, "open_windows")
	if err == nil {
		_, err = p.call(c, fiber.MethodPatch, apiPath("lanes", name), laneBody(c, windows), fiber.HeaderIfMatch, quoted(c.FormValue("version")))
	}
	if models.CodeOf(err) == models.ValidationFailed {
		return p.showLane(c, fiber.StatusUnprocessableEntity, err)
	}
	return done(c, place(c, templates.ObjectPath("/lanes", name)), "The lane "+name+" is changed.", err)
}

// laneBody is the form as the API takes it.
func laneBody(c *fiber.Ctx, windows json.RawMessage) fields {
	body := fields{"elastic": c.FormValue("elastic") == "true", "open_windows": []any{}}
	if windows != nil {
		body["open_windows"] = windows
	}
	for _, field := range laneWords {
		body[field] = nil
		if text := strings.TrimSpace(c.FormValue(field)); text != "" {
			body[field] = text
		}
	}
	for _, field := range laneNumbers {
		body[field] = nil
		if text := strings.TrimSpace(c.FormValue(field)); text != "" {
			body[field] = numberOr(text)
		}
	}
	for _, field := range laneLists {
		body[field] = strings.FieldsFunc(c.FormValue(field), func(r rune) bool { return r == ',' || r == ' ' })
	}
	return body
}
