package api

import (
	"encoding/json"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/gofiber/fiber/v2"

	"nightshift/handlers"
	"nightshift/handlers/inputschema"
	"nightshift/models"
	"nightshift/scheduler/engine"
)

func typeRoutes() []handlers.Route {
	const tag = "Task types"
	edit := endpoint(patch, "/v1/task-types/:type", writes, true, tag, "Say what holds for the tasks of a type", patchType, typePatch{}, 200, TaskType{})
	edit.MaxBody = 128 << 10
	return []handlers.Route{
		named(endpoint(get, "/v1/task-types", seeing, true, tag, "List the types that something was said of, by name", listTypes, nil, 200, handlers.Page[TaskType]{})),
		endpoint(get, "/v1/task-types/:type", seeing, true, tag, "What holds for the tasks of a type", getType, nil, 200, TaskType{}),
		edit,
	}
}

// TaskType is what an environment says of a type, as the API shows it.
type TaskType struct {
	Type          string          `json:"type"`
	Environment   string          `json:"environment"`
	InputSchema   json.RawMessage `json:"input_schema" doc:"a JSON Schema that payloads are held to at submit; null: anything goes"`
	MaxConcurrent *int64          `json:"max_concurrent" doc:"tasks of the type that run at once; null: no limit"`
	Paused        bool            `json:"paused"`
	Reason        *string         `json:"reason"`
	UpdatedAt     handlers.Time   `json:"updated_at"`
	Version       int64           `json:"version"`
}

func showType(environment string) func(models.TaskType) TaskType {
	return func(t models.TaskType) TaskType {
		schema := t.InputSchema
		if schema == nil {
			schema = json.RawMessage("null")
		}
		return TaskType{t.Type, environment, schema, t.MaxConcurrent, t.Paused, handlers.Null(t.Reason), handlers.Time(t.UpdatedAt), t.Version}
	}
}

type typePatch struct {
	InputSchema   handlers.Opt[jsontext.Value] `json:"input_schema"`
	MaxConcurrent handlers.Opt[int64]          `json:"max_concurrent"`
	Paused        handlers.Opt[bool]           `json:"paused"`
	Reason        handlers.Opt[string]         `json:"reason" doc:"why it is paused"`
}

// merge writes the given fields over what stands, and checks them.
func (p *typePatch) merge(t *models.TaskType) error {
	var k handlers.Check
	switch {
	case p.InputSchema.Null:
		t.InputSchema, t.Schema = nil, 0
	case p.InputSchema.Given:
		if _, err := inputschema.Compile(p.InputSchema.Value); err != nil {
			k.Fail("body.input_schema", "%s", err)
		}
		t.InputSchema, t.Schema = json.RawMessage(p.InputSchema.Value), models.NewSchema
	}
	switch {
	case p.MaxConcurrent.Null:
		t.MaxConcurrent = nil
	case p.MaxConcurrent.Given:
		handlers.Range(&k, "body.max_concurrent", p.MaxConcurrent.Value, 0, mostQuota)
		value := p.MaxConcurrent.Value
		t.MaxConcurrent = &value
	}
	p.Paused.Into(&t.Paused, false)
	p.Reason.Into(&t.Reason, "")
	k.Text("body.reason", t.Reason, 0, 500)
	if !t.Paused {
		t.Reason = ""
	}
	return k.Err()
}

func readTaskType(d *handlers.Deps, c *fiber.Ctx) (models.TaskType, error) {
	name, err := handlers.PathParam(c, "type")
	if err != nil {
		return models.TaskType{}, err
	}
	if !handlers.IsName(name) {
		return models.TaskType{}, models.Errorf(models.NotFound, "there is no task type %q", handlers.Shorten(name, 60))
	}
	caller := handlers.CallerOf(c)
	return d.World.TaskType(c.UserContext(), caller.Scope(), caller.Env, name)
}

func getType(d *handlers.Deps, c *fiber.Ctx) error {
	t, err := readTaskType(d, c)
	if err != nil {
		return err
	}
	handlers.SetETag(c, t.Version)
	return handlers.Answer(c, fiber.StatusOK, showType(handlers.CallerOf(c).Environment)(t))
}

func listTypes(d *handlers.Deps, c *fiber.Ctx) error {
	caller := handlers.CallerOf(c)
	return byName(d, c, func(after string, desc bool, most int) ([]models.TaskType, int64, error) {
		return d.World.TaskTypes(c.UserContext(), caller.Scope(), caller.Env, after, desc, most)
	}, showType(caller.Environment), func(t models.TaskType) string { return t.Type })
}

func patchType(d *handlers.Deps, c *fiber.Ctx) error {
	var ask typePatch
	if err := handlers.Bind(c, &ask); err != nil {
		return err
	}
	read := func() (models.TaskType, int64, error) {
		t, err := readTaskType(d, c)
		return t, t.Version, err
	}
	caller := handlers.CallerOf(c)
	defer d.Schemas.Forget(caller.Env)
	answer, err := edit(d, c, read, func(t *models.TaskType) (*engine.Configure, error) {
		err := ask.merge(t)
		return &engine.Configure{TaskType: t, Action: "task_type.edit", Reason: t.Reason}, err
	})
	if err != nil {
		return err
	}
	handlers.SetETag(c, answer.TaskType.Version)
	return handlers.Answer(c, fiber.StatusOK, showType(caller.Environment)(*answer.TaskType))
}
