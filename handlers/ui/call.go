package ui

import (
	"encoding/json"
	"errors"
	"net/url"
	"strings"

	"github.com/gofiber/fiber/v2"

	"nightshift/handlers"
	"nightshift/models"
)

// fields is the body of a call of the API.
type fields map[string]any

// call asks the API for the viewer. Its refusals name the fields that the page shows.
func (p *pages) call(c *fiber.Ctx, method, path string, body any, headers ...string) (*handlers.Reply, error) {
	return p.Inside(c.UserContext(), handlers.CallerOf(c), handlers.Call{Method: method, Path: path, Body: body, Headers: headers})
}

// read asks the API for an object or a list.
func (p *pages) read(c *fiber.Ctx, path string, into any) error {
	reply, err := p.call(c, fiber.MethodGet, path, nil)
	if err != nil {
		return err
	}
	return reply.Into(into)
}

// apiPath is a path of the API: its parts may hold anything.
func apiPath(parts ...string) string {
	out := "/v1"
	for _, part := range parts {
		out += "/" + url.PathEscape(part)
	}
	return out
}

// act does one thing through the API and goes back to where it can be seen.
func (p *pages) act(c *fiber.Ctx, to, text, path string, body any) error {
	_, err := p.call(c, fiber.MethodPost, path, body)
	return done(c, to, text, err)
}

// place is a link inside the scope that the viewer looks at.
func place(c *fiber.Ctx, path string) string { return frame(c, "", "").URL(path) }

// reasonOf is why the viewer does it, as the body of a call.
func reasonOf(c *fiber.Ctx) fields {
	if reason := strings.TrimSpace(c.FormValue("reason")); reason != "" {
		return fields{"reason": reason}
	}
	return fields{}
}

// jsonField is a text of a form that holds JSON. What is no JSON is refused under the name of its field.
func jsonField(c *fiber.Ctx, name string) (json.RawMessage, error) {
	text := strings.TrimSpace(c.FormValue(name))
	if text == "" {
		return nil, nil
	}
	var any json.RawMessage
	if err := json.Unmarshal([]byte(text), &any); err != nil {
		return nil, models.Invalid("body."+name, "this is no JSON: %s", strings.TrimPrefix(err.Error(), "json: "))
	}
	return any, nil
}

// faults are the sentences of a refusal by the field that they are about; what is about none stands under "".
func faults(err error) map[string]string {
	out := map[string]string{}
	var known *models.Error
	if !errors.As(err, &known) {
		return out
	}
	for _, f := range known.Fields {
		name, rest := splitPlace(strings.TrimPrefix(f.Location, "body."))
		text := sentence(f.Message)
		if rest != "" {
			text = rest + ": " + f.Message + "."
		}
		if out[name] != "" {
			text = out[name] + " " + text
		}
		out[name] = text
	}
	if len(known.Fields) == 0 {
		out[""] = sentence(known.Detail)
	}
	return out
}

// splitPlace cuts "task.payload.x" into its first name and the rest.
func splitPlace(place string) (name, rest string) {
	at := strings.IndexAny(place, ".[")
	if at < 0 {
		return place, ""
	}
	return place[:at], strings.TrimPrefix(place[at:], ".")
}

// understood says that the viewer can do something about a refusal: it is told where they are, not as an error page.
func understood(err error) bool {
	switch models.CodeOf(err) {
	case models.Internal, models.Forbidden, models.ScopeRequired, models.Unauthenticated, models.InvalidJSON:
		return false
	}
	return true
}
