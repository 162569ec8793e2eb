package ui

import (
	"strings"
	"time"

	"github.com/gofiber/fiber/v2"

	"nightshift/handlers"
	"nightshift/models"
	"nightshift/templates"
)

func (p *pages) environments(c *fiber.Ctx) error {
	return p.showEnvironments(c, fiber.StatusOK, templates.EnvironmentForm{Kind: "staging"}, templates.FreezeForm{})
}

func (p *pages) showEnvironments(c *fiber.Ctx, status int, form templates.EnvironmentForm, freeze templates.FreezeForm) error {
	var found list[struct {
		Freezes   []freezeWindow `json:"freeze_windows"`
		Name      string         `json:"name"`
		Kind      string         `json:"kind"`
		Paused    bool           `json:"paused"`
		Reason    string         `json:"reason"`
		CreatedAt time.Time      `json:"created_at"`
	}]
	if err := p.read(c, apiPath("environments")+"?limit=200&order=asc", &found); err != nil {
		return err
	}
	view := templates.EnvironmentsView{Form: form, Freeze: freeze, Timezone: p.zoneOf(c)}
	for _, e := range found.Data {
		view.Rows = append(view.Rows, templates.EnvironmentRow{
			Name: e.Name, Kind: e.Kind, Paused: e.Paused, Reason: e.Reason, CreatedAt: e.CreatedAt, Current: e.Name == handlers.CallerOf(c).Environment,
			Freezes: showFreezes(e.Freezes, p.Now()),
		})
	}
	page, err := p.whole(c, "Environments", "/environments")
	if err != nil {
		return err
	}
	return show(c, status, templates.Environments(page, view))
}

func (p *pages) createEnvironment(c *fiber.Ctx) error {
	form := templates.EnvironmentForm{Name: strings.TrimSpace(c.FormValue("name")), Kind: c.FormValue("kind")}
	_, err := p.call(c, fiber.MethodPost, apiPath("environments"), fields{"name": form.Name, "kind": form.Kind})
	if err != nil && understood(err) {
		if form.Wrong = faults(err); models.CodeOf(err) == models.StateConflict {
			form.Wrong = map[string]string{"name": sentence(detail(err))}
		}
		return p.showEnvironments(c, fiber.StatusUnprocessableEntity, form, templates.FreezeForm{})
	}
	return done(c, place(c, "/environments"), form.Name+" is there, with a lane a kind.", err)
}

// actOnEnvironment is pause or resume of an environment.
func (p *pages) actOnEnvironment(verb, text string) fiber.Handler {
	return func(c *fiber.Ctx) error {
		name, err := handlers.PathParam(c, "name")
		if err != nil {
			return err
		}
		return p.act(c, place(c, "/environments"), strings.ReplaceAll(text, "%", name), apiPath("environments", name, verb), reasonOf(c))
	}
}

// editEnvironment says what an environment is for.
func (p *pages) editEnvironment(c *fiber.Ctx) error {
	name, err := handlers.PathParam(c, "name")
	if err != nil {
		return err
	}
	_, err = p.call(c, fiber.MethodPatch, apiPath("environments", name), fields{"kind": c.FormValue("kind")})
	return done(c, place(c, "/environments"), name+" is changed.", err)
}
