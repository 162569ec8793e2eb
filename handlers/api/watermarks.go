package api

import (
	"encoding/json"

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
			Tag: "tasks", Summary: "List watermarks", Query: handlers.ListParams(), Replies: map[int]any{200: handlers.Page[MarkView]{}},
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
	q, err := handlers.ReadList(d, c)
	if err != nil {
		return err
	}
	var after string
	if _, err := q.After(&after); err != nil {
		return err
	}
	caller := handlers.CallerOf(c)
	rows, err := w.Reads.Marks(c.UserContext(), caller.Scope(), caller.Env, after, q.Limit+1)
	if err != nil {
		return err
	}
	page, err := handlers.PageOf(q, rows, viewMark, func(m models.Watermark) any { return m.Name })
	if err != nil {
		return err
	}
	return handlers.Answer(c, fiber.StatusOK, page)
}

func (w *Work) mark(_ *handlers.Deps, c *fiber.Ctx) error {
	if err := handlers.NoQuery(c); err != nil {
		return err
	}
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
	if err := handlers.NoQuery(c); err != nil {
		return err
	}
	name, err := handlers.PathParam(c, "name")
	if err != nil {
		return err
	}
	if !handlers.IsName(name) {
		return models.Invalid("path.name", "must match %s", "^[a-z0-9][a-z0-9._:-]{0,127}$")
	}
	match := handlers.IfMatch(c)
	if match == 0 {
		return models.Errorf(models.Stale, "If-Match names a version that does not stand; read the watermark again")
	}
	mark := &engine.Mark{Env: handlers.CallerOf(c).Env, Name: name}
	if match > 0 {
		mark.Version = &match
	}
	given := false
	err = readMembers(c, func(member string, m body.Value) bool {
		switch {
		case member == "value":
			given, mark.Value = true, m.Raw(handlers.CheckpointLimit)
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
	}
	handlers.SetETag(c, answer.Watermark.Version)
	return handlers.Answer(c, status, viewMark(*answer.Watermark))
}
