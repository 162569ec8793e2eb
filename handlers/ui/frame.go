package ui

import (
	"bytes"
	"encoding/base64"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/a-h/templ"
	"github.com/gofiber/fiber/v2"

	"nightshift/handlers"
	"nightshift/models"
	"nightshift/models/postgres"
	"nightshift/scheduler/engine"
	"nightshift/templates"
)

const mostChoices = 200 // tenants and environments that the switch offers

// show draws a component as the answer.
func show(c *fiber.Ctx, status int, component templ.Component) error {
	var out bytes.Buffer
	if err := component.Render(c.UserContext(), &out); err != nil {
		return models.Errorf(models.Internal, "the page can't be drawn: %w", err)
	}
	c.Set(fiber.HeaderContentType, fiber.MIMETextHTMLCharsetUTF8)
	return c.Status(status).Send(out.Bytes())
}

// frame is what a page knows without asking the database: enough for fragments, links and troubles.
func frame(c *fiber.Ctx, name, path string) templates.Page {
	caller := handlers.CallerOf(c)
	return templates.Page{
		Name: name, Path: path, CSRF: handlers.CSRFOf(c),
		Viewer: templates.Viewer{
			Email: caller.Email, Role: caller.Role, Platform: caller.Platform,
			Write: caller.Holds(handlers.TasksWrite), Admin: caller.Holds(handlers.AdminWrite),
			Schedules: caller.Holds(handlers.SchedulesWrite),
		},
		Scope: templates.Scope{
			Tenant: caller.TenantSlug, TenantName: caller.TenantSlug, Environment: caller.Environment, Timezone: "UTC",
			Production: caller.Environment == "production", Stream: strconv.Itoa(int(caller.Env)),
			Carry: caller.Platform || c.Query("tenant") != "" || c.Query("environment") != "",
		},
	}
}

// fragment is the frame of a part of a page that is drawn again.
func (p *pages) fragment(c *fiber.Ctx, name, path string) templates.Page {
	page := frame(c, name, path)
	page.Now = p.Now().Time()
	return page
}

// whole is the frame of a whole page: with the switches, the notice and the count beside the dead letters.
func (p *pages) whole(c *fiber.Ctx, name, path string) (templates.Page, error) {
	page := p.fragment(c, name, path)
	page.Notice = takeNotice(c)
	caller, ctx := handlers.CallerOf(c), c.UserContext()
	if err := p.switches(c, &page); err != nil || caller.Tenant == 0 {
		return page, err
	}
	tenant, err := p.Directory.TenantByNumber(ctx, caller.Tenant)
	if err != nil {
		return page, err
	}
	page.Scope.TenantName, page.Scope.Timezone = tenant.Name, tenant.Timezone
	dead, _, err := p.reads.CountTasks(ctx, caller.Scope(), caller.Env, &postgres.TaskFilter{States: []models.State{models.DeadLetter}})
	page.DeadLetters = int(dead)
	return page, err
}

// switches offers the tenants and environments that the viewer may look at.
func (p *pages) switches(c *fiber.Ctx, page *templates.Page) error {
	caller, ctx := handlers.CallerOf(c), c.UserContext()
	if caller.Platform {
		tenants, _, err := p.World.Tenants(ctx, postgres.RowList{Limit: mostChoices})
		if err != nil {
			return err
		}
		for _, t := range tenants {
			page.Tenants = append(page.Tenants, templates.Choice{Slug: t.Slug, Name: t.Name})
		}
	}
	if caller.Tenant == 0 {
		return nil
	}
	environments, _, err := p.World.Environments(ctx, caller.Tenant, postgres.RowList{Limit: mostChoices})
	if err != nil {
		return err
	}
	for _, e := range environments {
		production := e.Kind == "production"
		page.Environments = append(page.Environments, templates.Choice{Slug: e.Name, Name: e.Name, Production: production})
		if e.Name == caller.Environment {
			page.Scope.Production = production
		}
	}
	return nil
}

// look asks the brain for live facts. Without an answer the page stands on what was saved.
func (p *pages) look(c *fiber.Ctx, what *engine.Look) *engine.Looked {
	caller := handlers.CallerOf(c)
	command := p.Command(caller)
	command.Look = what
	answer, err := p.Door.Do(c.UserContext(), command)
	if err != nil || answer.Looked == nil {
		return &engine.Looked{Now: p.Now()}
	}
	return answer.Looked
}

// noticeCookie carries what became of an action to the page behind the redirect.
const noticeCookie = "nightshift-notice"

func setNotice(c *fiber.Ctx, good bool, text string) {
	mark := "-"
	if good {
		mark = "+"
	}
	value := base64.RawURLEncoding.EncodeToString([]byte(mark + handlers.Shorten(text, 600)))
	c.Cookie(&fiber.Cookie{Name: noticeCookie, Value: value, Path: "/", MaxAge: 60, HTTPOnly: true, SameSite: fiber.CookieSameSiteLaxMode})
}

func takeNotice(c *fiber.Ctx) *templates.Notice {
	value := c.Cookies(noticeCookie)
	if value == "" {
		return nil
	}
	c.Cookie(&fiber.Cookie{Name: noticeCookie, Path: "/", Expires: time.Unix(1, 0), HTTPOnly: true, SameSite: fiber.CookieSameSiteLaxMode})
	text, err := base64.RawURLEncoding.DecodeString(value)
	if err != nil || len(text) < 2 || !handlers.Storable(string(text)) {
		return nil
	}
	return &templates.Notice{Good: text[0] == '+', Text: string(text[1:])}
}

// done ends an action: the browser goes where the result can be seen. A refusal that the viewer can understand is told
// there too; what is our own fault is an error page.
func done(c *fiber.Ctx, to, text string, err error) error {
	switch {
	case err == nil:
		setNotice(c, true, text)
	case understood(err):
		setNotice(c, false, told(err))
	default:
		return err
	}
	return c.Redirect(to, fiber.StatusSeeOther)
}

// told is a refusal as a sentence for somebody who filled in a form.
func told(err error) string {
	if models.CodeOf(err) == models.Stale {
		return "Somebody else changed this meanwhile. Look at what stands now, then do it again."
	}
	var known *models.Error
	if errors.As(err, &known) && len(known.Fields) > 0 {
		var texts []string
		for _, f := range known.Fields {
			name := strings.ReplaceAll(strings.TrimPrefix(strings.TrimPrefix(f.Location, "body"), "."), "_", " ")
			texts = append(texts, strings.TrimSpace(name+" "+strings.TrimPrefix(f.Message, "it ")))
		}
		return sentence(strings.Join(texts, "; "))
	}
	return sentence(detail(err))
}
