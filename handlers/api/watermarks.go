package api

import (
	"encoding/json"
	"net/url"

	"github.com/gofiber/fiber/v2"

	"nightshift/handlers"
	"nightshift/handlers/body"
	"nightshift/models"
	"nightshift/scheduler/engine"
)

// MarkView is a watermark.
type MarkView struct {
	Name      string          `json:"name"`
	Value     json.RawMessage `json:"value"`
	Version   int64           `json:"version"`
	UpdatedAt handlers.Time   `json:"updated_at"`
}

// MarkInput sets a watermark.
type MarkInput struct {
	Value   json.RawMessage `json:"value" required:"true" doc:"any JSON up to 64 kB"`
	Version int64           `json:"version" doc:"that was read last: with another one standing it is 412; left out: the last writer wins"`
}

func viewMark(m models.Watermark) MarkView {
	return MarkView{Name: m.Name, Value: m.Value, Version: m.Version, UpdatedAt: handlers.Time(m.At)}
}

func (w *Work) markRoutes() []handlers.Route {
	read, write := []string{handlers.TasksRead}, []string{handlers.TasksWrite}
	return tenantRoutes(
		handlers.Route{Method: "GET", Path: "/v1/watermarks", Scopes: read, Handler: w.marks, Doc: handlers.Doc{
			Tag: "tasks", Summary: "List watermarks", Query: handlers.ByNameParams(), Replies: map[int]any{200: handlers.Page[MarkView]{}},
		}},
		handlers.Route{Method: "GET", Path: "/v1/watermarks/:name", Scopes: read, Handler: w.mark, Doc: handlers.Doc{
			Tag: "tasks", Summary: "Read a watermark", Replies: map[int]any{200: MarkView{}},
		}},
		handlers.Route{Method: "PUT", Path: "/v1/watermarks/:name", Scopes: write, Handler: w.putMark, Doc: handlers.Doc{
			Tag: "tasks", Summary: "Set a watermark", Body: MarkInput{}, Replies: map[int]any{200: MarkView{}, 201: MarkView{}},
		}},
	)
}

func (w *Work) marks(d *handlers.Deps, c *fiber.Ctx) error {
	caller := handlers.CallerOf(c)
	return byName(d, c, func(after string, desc bool, most int) ([]models.Watermark, int64, error) {
		return w.Reads.Marks(c.UserContext(), caller.Scope(), caller.Env, after, desc, most)
	}, viewMark, func(m models.Watermark) string { return m.Name })
}

func (w *Work) mark(_ *handlers.Deps, c *fiber.Ctx) error {
	name, err := handlers.PathParam(c, "name")
	if err != nil {
		return err
	}
	caller := handlers.CallerOf(c)
	row, err := w.Reads.Mark(c.UserContext(), caller.Scope(), caller.Env, name)
	if err != nil {
		return err
	}
	handlers.SetETag(c, row.Version)
	return handlers.Answer(c, fiber.StatusOK, viewMark(row))
}

// putMark sets a watermark, from nothing or from the version that was read.
func (w *Work) putMark(d *handlers.Deps, c *fiber.Ctx) error {
	name, err := handlers.PathParam(c, "name")
	if err != nil {
		return err
	}
	if !handlers.IsName(name) {
		return models.Invalid("path.name", "must match %s", "^[a-z0-9][a-z0-9._:-]{0,127}$")
	}
	caller := handlers.CallerOf(c)
	mark := &engine.Mark{Env: caller.Env, Name: name, Value: json.RawMessage("null")}
	insisted := handlers.IfMatch(c)
	if insisted.Sent {
		row, err := w.Reads.Mark(c.UserContext(), caller.Scope(), caller.Env, name)
		if models.CodeOf(err) == models.NotFound {
			row.Version, err = absent, nil
		}
		if err == nil {
			err = insisted.Fits(row.Version)
		}
		if err != nil {
			return err
		}
		if insisted.OfVersion() {
			mark.Version = &row.Version
		}
	}
	given := false
	err = readMembers(c, func(member string, m body.Value) bool {
		switch {
		case member == "value":
			given = true
			if !m.Null() {
				mark.Value = m.Raw(handlers.CheckpointLimit)
			}
		case member != "version":
			return false
		case !m.Null():
			n := m.Int(0, 1<<53)
			mark.Version = &n
		}
		return true
	}, func() string {
		if !given {
			return "value"
		}
		return ""
	})
	if err != nil {
		return err
	}
	answer, err := ask(d, c, func(cmd *engine.Command) { cmd.Mark = mark })
	if err != nil {
		return err
	}
	status := fiber.StatusOK
	if answer.Watermark.Version == 1 {
		status = fiber.StatusCreated
		c.Location("/v1/watermarks/" + url.PathEscape(name))
	}
	handlers.SetETag(c, answer.Watermark.Version)
	return handlers.Answer(c, status, viewMark(*answer.Watermark))
}
