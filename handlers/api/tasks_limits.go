package api

import (
	"encoding/json"
	"slices"

	"github.com/gofiber/fiber/v2"

	"nightshift/handlers"
	"nightshift/handlers/body"
	"nightshift/models"
	"nightshift/models/postgres"
	"nightshift/scheduler/engine"
)

// mostPermissions is how many a task may ask for.
const mostPermissions = 32

// permissions reads what a task asks for. What its environment grants is decided later; what the caller's key may hand on
// is known here.
func (d *draft) permissions(v body.Value) {
	var names []string
	n := v.Elements(func(i int, e body.Value) {
		if i < mostPermissions {
			names = append(names, e.Name())
		}
	})
	if n > mostPermissions {
		v.Wrong("must have at most %d entries", mostPermissions)
		return
	}
	slices.Sort(names)
	names = slices.Compact(names)
	if err := mayHandOut(d.r.may, names); err != nil {
		d.r.denied = err
	}
	if len(names) > 0 {
		d.task.Class.Permissions = names
	}
}

// mayHandOut says why a key may not give a task permissions.
func mayHandOut(may, names []string) error {
	for _, name := range names {
		if len(may) > 0 && !slices.Contains(may, name) {
			return models.Errorf(models.PermissionNotAllowed, "this key may not hand out the permission %s", name)
		}
	}
	return nil
}

// checkAgain holds another payload of a task that was made before to its type's input schema.
func checkAgain(d *handlers.Deps, c *fiber.Ctx, row *postgres.TaskRow, payload json.RawMessage) error {
	r := reader(d, c)
	r.check(&engine.NewTask{Class: row.Needs, Payload: payload}, "body.payload")
	return r.err()
}

// check holds a payload to the input schema of its type, and notes which schema that was.
func (r *taskReader) check(t *engine.NewTask, at string) {
	if r.schemas == nil || t.Class.Type == "" {
		return
	}
	schemas, err := r.schemas(r.env)
	if err != nil {
		r.denied = err
		return
	}
	schema := schemas[t.Class.Type]
	switch {
	case r.loose:
		t.Schema = engine.Unchecked
		return
	case schema == nil:
		return
	}
	t.Schema = schema.Number
	for _, p := range schema.Check(t.Payload) {
		r.problem.Addf(at+p.Path, "%s", p.Message)
	}
}

func (d *draft) check(t *engine.NewTask, at string) { d.r.check(t, at) }
