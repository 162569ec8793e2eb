package ui

import (
	"strings"
	"time"

	"github.com/gofiber/fiber/v2"

	"nightshift/handlers"
	"nightshift/models"
	"nightshift/templates"
)

// freezeWindow is a time in which nothing of an environment fires, as the API writes it.
type freezeWindow struct {
	StartsAt time.Time `json:"starts_at"`
	EndsAt   time.Time `json:"ends_at"`
	Reason   *string   `json:"reason"`
}

// freezesOf are those of an environment, with the version they are of.
func (p *pages) freezesOf(c *fiber.Ctx, name string) (list []freezeWindow, version string, err error) {
	reply, err := p.call(c, fiber.MethodGet, apiPath("environments", name), nil)
	if err != nil {
		return nil, "", err
	}
	var e struct {
		Freezes []freezeWindow `json:"freeze_windows"`
	}
	return e.Freezes, reply.ETag, reply.Into(&e)
}

// showFreezes are those that are not over, by their environments' names.
func showFreezes(list []freezeWindow, now models.Instant) (out []templates.Freeze) {
	for _, f := range list {
		if models.InstantOf(f.EndsAt) <= now {
			continue
		}
		row := templates.Freeze{From: f.StartsAt, To: f.EndsAt}
		if f.Reason != nil {
			row.Reason = *f.Reason
		}
		out = append(out, row)
	}
	return out
}

// setFreezes replaces an environment's freezes, unless somebody changed it meanwhile.
func (p *pages) setFreezes(c *fiber.Ctx, name, version string, list any) error {
	_, err := p.call(c, fiber.MethodPatch, apiPath("environments", name), fields{"freeze_windows": list}, fiber.HeaderIfMatch, version)
	return err
}

// freeze adds a time in which no schedule of an environment fires.
func (p *pages) freeze(c *fiber.Ctx) error {
	form := templates.FreezeForm{Values: map[string]string{}}
	for _, name := range []string{"environment", "starts_at", "ends_at", "reason"} {
		form.Values[name] = strings.TrimSpace(c.FormValue(name))
	}
	list, version, err := p.freezesOf(c, form.Values["environment"])
	if err == nil {
		windows := make([]any, 0, len(list)+1)
		for _, f := range list {
			windows = append(windows, f)
		}
		zone := p.zoneOf(c)
		windows = append(windows, fields{"starts_at": moment(form.Values["starts_at"], zone), "ends_at": moment(form.Values["ends_at"], zone), "reason": form.Values["reason"]})
		err = p.setFreezes(c, form.Values["environment"], version, windows)
	}
	if err != nil && understood(err) && models.CodeOf(err) != models.NotFound {
		form.Wrong = freezeFaults(err)
		return p.showEnvironments(c, fiber.StatusUnprocessableEntity, templates.EnvironmentForm{Kind: "staging"}, form)
	}
	return done(c, place(c, "/environments"), "No schedule of "+form.Values["environment"]+" fires in that time.", err)
}

// freezeFaults are the sentences of a refusal by the fields of the form: the window that was added is the one at fault.
func freezeFaults(err error) map[string]string {
	out := map[string]string{}
	for name, text := range faults(err) {
		for _, field := range []string{"starts_at", "ends_at", "reason"} {
			if _, rest, found := strings.Cut(text, "]."+field+": "); found {
				name, text = field, sentence(strings.TrimSuffix(rest, "."))
			}
		}
		if name == "freeze_windows" {
			name = "starts_at"
		}
		out[name] = text
	}
	return out
}

// thaw takes a freeze away.
func (p *pages) thaw(c *fiber.Ctx) error {
	name, err := handlers.PathParam(c, "name")
	if err != nil {
		return err
	}
	to := place(c, "/environments")
	list, version, err := p.freezesOf(c, name)
	if err != nil {
		return done(c, to, "", err)
	}
	left := []freezeWindow{}
	for _, f := range list {
		if f.StartsAt.UTC().Format(time.RFC3339Nano) != c.FormValue("starts_at") {
			left = append(left, f)
		}
	}
	return done(c, to, "The freeze is lifted.", p.setFreezes(c, name, version, left))
}

// zoneOf is the timezone of the tenant that is looked at.
func (p *pages) zoneOf(c *fiber.Ctx) string {
	tenant, err := p.Directory.TenantByNumber(c.UserContext(), handlers.CallerOf(c).Tenant)
	if err != nil {
		return "UTC"
	}
	return tenant.Timezone
}
