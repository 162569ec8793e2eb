package api

import (
	"net/url"
	"slices"
	"strings"

	"github.com/gofiber/fiber/v2"

	"nightshift/handlers"
	"nightshift/models"
	"nightshift/models/postgres"
	"nightshift/scheduler/engine"
)

// Environment is an isolated world of a tenant as the API shows it.
type Environment struct {
	ID        handlers.TypedID `json:"id"`
	Name      string           `json:"name"`
	Kind      string           `json:"kind" enum:"production,staging,development"`
	Paused    bool             `json:"paused"`
	Reason    *string          `json:"reason"`
	Freezes   []FreezeWindow   `json:"freeze_windows" doc:"times in which no schedule fires: occurrences are excluded"`
	CreatedAt handlers.Time    `json:"created_at"`
	UpdatedAt handlers.Time    `json:"updated_at"`
	Version   int64            `json:"version"`
}

func showEnvironment(e models.Environment) Environment {
	return Environment{
		handlers.TypedID{Prefix: models.EnvironmentPrefix, ID: e.ID},
		e.Name, e.Kind, e.Paused, handlers.Null(e.Reason), showFreezes(e.Freezes),
		handlers.Time(e.CreatedAt), handlers.Time(e.UpdatedAt), e.Version,
	}
}

type newEnvironment struct {
	Name string               `json:"name" required:"true"`
	Kind handlers.Opt[string] `json:"kind" enum:"production,staging,development" doc:"development when left out"`
}

type environmentPatch struct {
	Kind          handlers.Opt[string]        `json:"kind" enum:"production,staging,development"`
	FreezeWindows handlers.Opt[[]freezeInput] `json:"freeze_windows" doc:"all of them, at most 100"`
}

func checkEnvironment(e *models.Environment) error {
	var k handlers.Check
	if k.Name("body.name", e.Name) {
		k.That(!strings.HasPrefix(e.Name, models.EnvironmentPrefix+"_"), "body.name", "a name does not begin like an id")
	}
	k.OneOf("body.kind", e.Kind, "production", "staging", "development")
	return k.Err()
}

func createEnvironment(d *handlers.Deps, c *fiber.Ctx) error {
	var ask newEnvironment
	dry, err := handlers.DryRun(c)
	if err != nil {
		return err
	}
	if err := handlers.Bind(c, &ask); err != nil {
		return err
	}
	caller := handlers.CallerOf(c)
	row := models.Environment{ID: d.Mint(), Tenant: caller.Tenant, Name: ask.Name, Kind: ask.Kind.Or("development")}
	if err := checkEnvironment(&row); err != nil {
		return err
	}
	var may error
	if len(caller.Environments) > 0 && !slices.Contains(caller.Environments, row.Name) {
		may = models.Errorf(models.Forbidden, "the key is good for %s alone", strings.Join(caller.Environments, ", "))
	}
	if dry {
		refusals, err := wouldConfigure(d, c, &engine.Configure{Environment: &row}, may)
		if err != nil {
			return err
		}
		row.ID, row.Version = models.ID{}, 1
		return handlers.Answer(c, fiber.StatusOK, environmentDry{showEnvironment(row), refusals})
	}
	if may != nil {
		return may
	}
	return handlers.Create(d, c, func(once *engine.Once) (*handlers.Made, error) {
		answer, err := configure(d, c, &engine.Configure{Environment: &row, New: true, Once: once, Action: "environment.create"})
		if err != nil {
			return nil, err
		}
		if answer.Replay {
			return &handlers.Made{Replay: true, Again: func() (*handlers.Made, error) {
				known, err := d.World.Environment(c.UserContext(), caller.Tenant, answer.Made[0].Text(models.EnvironmentPrefix))
				return madeEnvironment(known), err
			}}, nil
		}
		return madeEnvironment(*answer.Environment), nil
	})
}

func madeEnvironment(e models.Environment) *handlers.Made {
	return &handlers.Made{Status: fiber.StatusCreated, Location: "/v1/environments/" + url.PathEscape(e.Name), Body: showEnvironment(e)}
}

func listEnvironments(d *handlers.Deps, c *fiber.Ctx) error {
	q, rows, err := rowList(d, c)
	if err != nil {
		return err
	}
	envs, total, err := d.World.Environments(c.UserContext(), handlers.CallerOf(c).Tenant, rows)
	if err != nil {
		return err
	}
	return answerRows(c, q, envs, total, showEnvironment, func(e models.Environment) int64 { return int64(e.Env) })
}

func readEnvironment(d *handlers.Deps, c *fiber.Ctx) (models.Environment, error) {
	name, err := handlers.PathParam(c, "name")
	if err != nil {
		return models.Environment{}, err
	}
	return d.World.Environment(c.UserContext(), handlers.CallerOf(c).Tenant, name)
}

func getEnvironment(d *handlers.Deps, c *fiber.Ctx) error {
	env, err := readEnvironment(d, c)
	if err != nil {
		return err
	}
	handlers.SetETag(c, env.Version)
	return handlers.Answer(c, fiber.StatusOK, showEnvironment(env))
}

func patchEnvironment(d *handlers.Deps, c *fiber.Ctx) error {
	var ask environmentPatch
	if err := handlers.Bind(c, &ask); err != nil {
		return err
	}
	freezes, err := readFreezes(ask.FreezeWindows.Value)
	if err != nil {
		return err
	}
	return editEnvironment(d, c, "environment.edit", "", func(e *models.Environment) {
		ask.Kind.Into(&e.Kind, "development")
		if ask.FreezeWindows.Given {
			e.Freezes = freezes
		}
	})
}

// deleteEnvironment closes an empty environment: it is sealed, looked through, and then closed.
func deleteEnvironment(d *handlers.Deps, c *fiber.Ctx) error {
	caller := handlers.CallerOf(c)
	read := func() (models.Environment, int64, error) {
		e, err := readEnvironment(d, c)
		return e, e.Version, err
	}
	sealed, err := edit(d, c, read, func(e *models.Environment) (*engine.Configure, error) {
		if len(caller.Environments) > 0 && !slices.Contains(caller.Environments, e.Name) {
			return nil, models.Errorf(models.Forbidden, "the key is not good for the environment %s", e.Name)
		}
		return &engine.Configure{CloseEnvironment: e.Env, Seal: true}, nil
	})
	if err != nil {
		return err
	}
	env := sealed.Environment
	unseal := func() {
		if _, err := configure(d, c, &engine.Configure{CloseEnvironment: env.Env, Unseal: true}); err != nil {
			d.Logger.Warn("an environment takes nothing for some seconds, though it is not deleted", "environment", env.Name, "error", err)
		}
	}
	switch left, err := d.World.Unfinished(c.UserContext(), postgres.Scope{Tenant: caller.Tenant, Envs: []int32{env.Env}}, env.Env); {
	case err != nil:
		unseal()
		return err
	case left:
		unseal()
		return models.Errorf(models.StateConflict, "the environment %s holds tasks that have not ended, or dead letters that nobody has decided on", env.Name)
	}
	if _, err := configure(d, c, &engine.Configure{CloseEnvironment: env.Env, Version: env.Version, Action: "environment.delete"}); err != nil {
		return err
	}
	d.Keys.ForgetAll()
	return handlers.NoContent(c)
}

// setPaused is the handler of pause and resume of an environment.
func setPaused(paused bool, action string) func(*handlers.Deps, *fiber.Ctx) error {
	return func(d *handlers.Deps, c *fiber.Ctx) error {
		reason, err := givenReason(c)
		if err != nil {
			return err
		}
		return editEnvironment(d, c, action, reason, func(e *models.Environment) {
			e.Paused, e.Reason = paused, ""
			if paused {
				e.Reason = reason
			}
		})
	}
}

func editEnvironment(d *handlers.Deps, c *fiber.Ctx, action, reason string, change func(*models.Environment)) error {
	caller := handlers.CallerOf(c)
	read := func() (models.Environment, int64, error) {
		e, err := readEnvironment(d, c)
		return e, e.Version, err
	}
	answer, err := edit(d, c, read, func(e *models.Environment) (*engine.Configure, error) {
		if len(caller.Environments) > 0 && !slices.Contains(caller.Environments, e.Name) {
			return nil, models.Errorf(models.Forbidden, "the key is not good for the environment %s", e.Name)
		}
		change(e)
		return &engine.Configure{Environment: e, Action: action, Reason: reason}, checkEnvironment(e)
	})
	if err != nil {
		return err
	}
	handlers.SetETag(c, answer.Environment.Version)
	return handlers.Answer(c, fiber.StatusOK, showEnvironment(*answer.Environment))
}
