package ui

import (
	"slices"
	"strings"
	"time"

	"github.com/gofiber/fiber/v2"

	"nightshift/handlers"
	"nightshift/templates"
)

// apiKey is a key as the API answers it.
type apiKey struct {
	ID            string    `json:"id"`
	Secret        string    `json:"client_secret"`
	Name          string    `json:"name"`
	Scopes        []string  `json:"scopes"`
	Environments  []string  `json:"environments"`
	Lanes         []string  `json:"lanes"`
	CreatedBy     string    `json:"created_by"`
	CreatedAt     time.Time `json:"created_at"`
	ExpiresAt     time.Time `json:"expires_at"`
	LastUsedAt    time.Time `json:"last_used_at"`
	PreviousUntil time.Time `json:"previous_secret_until"`
}

// scopeWords say what a key with a scope may do.
var scopeWords = map[string]string{
	handlers.TasksRead: "see tasks, workflows and dead letters", handlers.TasksWrite: "submit and decide on them", handlers.SchedulesRead: "see schedules",
	handlers.SchedulesWrite: "change schedules", handlers.AdminRead: "see lanes, keys and the audit", handlers.AdminWrite: "change lanes, keys and environments",
	handlers.UsageRead: "see what was used", handlers.ScaleRead: "see how many workers are wanted", handlers.WorkersRegister: "run workers", handlers.SecretsUse: "use secrets",
}

func (p *pages) settings(c *fiber.Ctx) error {
	return p.showSettings(c, fiber.StatusOK, p.keyForm(c), nil)
}

// keyForm is an empty form: every scope that the viewer may give.
func (p *pages) keyForm(c *fiber.Ctx) templates.KeyForm {
	return templates.KeyForm{Values: map[string]string{}, Scopes: p.scopeTicks(c, []string{handlers.TasksRead, handlers.TasksWrite}), Once: p.Mint().Text("form")}
}

func (p *pages) scopeTicks(c *fiber.Ctx, on []string) (out []templates.Tick) {
	for _, scope := range handlers.Scopes() {
		if scope != handlers.Platform && handlers.CallerOf(c).Holds(scope) {
			out = append(out, templates.Tick{Name: scope, About: scopeWords[scope], On: slices.Contains(on, scope)})
		}
	}
	return out
}

func (p *pages) showSettings(c *fiber.Ctx, status int, form templates.KeyForm, made *templates.MadeKey) error {
	var found list[apiKey]
	if err := p.read(c, listPath(c, apiPath("api-keys"), pageRows), &found); err != nil {
		return err
	}
	view := templates.SettingsView{Next: found.Next, Earlier: c.Query("cursor") != "", Form: form, Made: made}
	var makers []string
	for _, k := range found.Data {
		makers = append(makers, k.CreatedBy)
	}
	names, err := p.actorNames(c, makers)
	if err != nil {
		return err
	}
	for _, k := range found.Data {
		view.Keys = append(view.Keys, templates.KeyRow{
			ID: k.ID, Name: k.Name, Scopes: k.Scopes, Environments: k.Environments, Lanes: k.Lanes, CreatedBy: names[k.CreatedBy], CreatedAt: k.CreatedAt,
			ExpiresAt: k.ExpiresAt, LastUsedAt: k.LastUsedAt, PreviousUntil: k.PreviousUntil,
		})
	}
	page, err := p.whole(c, "Settings", "/settings")
	if err != nil {
		return err
	}
	ticked := multi(c, "environments")
	for _, choice := range page.Environments {
		view.Form.Environments = append(view.Form.Environments, templates.Tick{Name: choice.Slug, On: slices.Contains(ticked, choice.Slug)})
	}
	return show(c, status, templates.Settings(page, view))
}

// multi are all values of a form's field.
func multi(c *fiber.Ctx, name string) (out []string) {
	for _, value := range c.Context().PostArgs().PeekMulti(name) {
		out = append(out, string(value))
	}
	return out
}

func (p *pages) createKey(c *fiber.Ctx) error {
	form := p.keyForm(c)
	form.Values["name"], form.Values["expires_at"] = c.FormValue("name"), c.FormValue("expires_at")
	scopes, environments := multi(c, "scopes"), multi(c, "environments")
	form.Scopes = p.scopeTicks(c, scopes)
	body := fields{"name": strings.TrimSpace(form.Values["name"]), "scopes": append([]string{}, scopes...)}
	if len(environments) > 0 {
		body["environments"] = environments
	}
	if form.Values["expires_at"] != "" {
		body["expires_at"] = moment(form.Values["expires_at"], "UTC")
	}
	reply, err := p.call(c, fiber.MethodPost, apiPath("api-keys"), body, onceOf(c)...)
	if err != nil && understood(err) {
		form.Wrong = faults(err)
		return p.showSettings(c, fiber.StatusUnprocessableEntity, form, nil)
	}
	if err != nil {
		return err
	}
	return p.showMade(c, reply, false)
}

// onceOf lets a form that is sent twice make one thing: the answer to the second is that of the first.
func onceOf(c *fiber.Ctx) []string {
	if once := c.FormValue("once"); once != "" {
		return []string{"Idempotency-Key", handlers.Shorten(once, 200)}
	}
	return nil
}

// showMade shows a secret, this once. It stands in no address, cookie or store.
func (p *pages) showMade(c *fiber.Ctx, reply *handlers.Reply, rotated bool) error {
	var key apiKey
	if err := reply.Into(&key); err != nil {
		return err
	}
	p.Keys.Forget(key.ID)
	return p.showSettings(c, fiber.StatusOK, p.keyForm(c), &templates.MadeKey{Name: key.Name, ID: key.ID, Secret: key.Secret, Rotated: rotated, PreviousUntil: key.PreviousUntil})
}

func (p *pages) rotateKey(c *fiber.Ctx) error {
	id, err := handlers.PathParam(c, "id")
	if err != nil {
		return err
	}
	body := fields{}
	if text := strings.TrimSpace(c.FormValue("overlap")); text != "" {
		body["overlap_seconds"] = numberOr(text)
		if hours, is := body["overlap_seconds"].(int64); is {
			body["overlap_seconds"] = hours * 3600
		}
	}
	reply, err := p.call(c, fiber.MethodPost, apiPath("api-keys", id, "rotate"), body, onceOf(c)...)
	if err != nil {
		return done(c, place(c, "/settings"), "", err)
	}
	return p.showMade(c, reply, true)
}

func (p *pages) revokeKey(c *fiber.Ctx) error {
	id, err := handlers.PathParam(c, "id")
	if err != nil {
		return err
	}
	_, err = p.call(c, fiber.MethodDelete, apiPath("api-keys", id), nil)
	return done(c, place(c, "/settings"), "The key is revoked; its tokens end within a minute.", err)
}
