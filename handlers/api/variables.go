package api

import (
	"github.com/gofiber/fiber/v2"

	"nightshift/handlers"
	"nightshift/handlers/body"
	"nightshift/models"
	"nightshift/scheduler/engine"
)

// Bounds of an environment's variables: they are read whole with each run that asks for one.
const (
	mostVariables     = 256
	mostVariableBytes = 4096
	mostVariablesText = 64 << 10
)

// VariablesView are an environment's variables.
type VariablesView struct {
	Variables map[string]string `json:"variables"`
	UpdatedAt handlers.Time     `json:"updated_at" doc:"null before any were set"`
	Version   int64             `json:"version"`
}

type variablesInput struct {
	Variables map[string]string `json:"variables" required:"true" doc:"all of them, at most 256 and 64 kB together: what is left out goes"`
}

func viewVariables(v *models.Variables) VariablesView {
	return VariablesView{Variables: mapOf(v.Vars), UpdatedAt: handlers.Time(v.At), Version: v.Version}
}

func variableRoutes() []handlers.Route {
	const tag, path = "Variables", "/v1/variables"
	return []handlers.Route{
		endpoint(get, path, reads, true, tag, "Read the variables that payloads of schedules may ask for", getVariables, nil, 200, VariablesView{}),
		endpoint(fiber.MethodPut, path, writes, true, tag, "Set the variables, all together", putVariables, variablesInput{}, 200, VariablesView{}),
	}
}

func getVariables(d *handlers.Deps, c *fiber.Ctx) error {
	caller := handlers.CallerOf(c)
	row, err := d.World.Variables(c.UserContext(), caller.Scope(), caller.Env)
	if err != nil {
		return err
	}
	handlers.SetETag(c, row.Version)
	return handlers.Answer(c, fiber.StatusOK, viewVariables(&row))
}

func putVariables(d *handlers.Deps, c *fiber.Ctx) error {
	vars, err := readVariables(c)
	if err != nil {
		return err
	}
	caller := handlers.CallerOf(c)
	read := func() (models.Variables, int64, error) {
		row, err := d.World.Variables(c.UserContext(), caller.Scope(), caller.Env)
		return row, row.Version, err
	}
	answer, err := edit(d, c, read, func(*models.Variables) (*engine.Configure, error) {
		return &engine.Configure{Variables: &models.Variables{Env: caller.Env, Vars: vars}, Action: "variables.set"}, nil
	})
	if err != nil {
		return err
	}
	handlers.SetETag(c, answer.Variables.Version)
	return handlers.Answer(c, fiber.StatusOK, viewVariables(answer.Variables))
}

func readVariables(c *fiber.Ctx) (map[string]string, error) {
	vars, given, size := map[string]string{}, false, 0
	err := readMembers(c, func(name string, m body.Value) bool {
		if name != "variables" {
			return false
		}
		if given = true; !m.IsObject() {
			m.Wrong("must be an object of texts")
			return true
		}
		m.Members(func(name string, v body.Value) {
			if !isVariable(name) {
				v.Wrong("a name has up to 128 letters, digits, . _ : or -, and begins with a letter, digit or _")
				return
			}
			vars[name] = v.String(0, mostVariableBytes)
			size += len(name) + len(vars[name])
		})
		switch {
		case len(vars) > mostVariables:
			m.Wrong("there are at most %d", mostVariables)
		case size > mostVariablesText:
			m.Wrong("names and values have at most %d bytes together", mostVariablesText)
		}
		return true
	}, func() string {
		if !given {
			return "variables"
		}
		return ""
	})
	return vars, err
}

// isVariable says that a placeholder may name it.
func isVariable(name string) bool {
	for i := range len(name) {
		switch b := name[i]; {
		case 'a' <= b && b <= 'z', 'A' <= b && b <= 'Z', '0' <= b && b <= '9', b == '_':
		case i > 0 && (b == '.' || b == ':' || b == '-'):
		default:
			return false
		}
	}
	return name != "" && len(name) <= 128
}
