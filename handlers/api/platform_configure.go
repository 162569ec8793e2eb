package api

import (
	"github.com/gofiber/fiber/v2"

	"nightshift/handlers"
	"nightshift/models"
	"nightshift/scheduler/engine"
)

// staleTries is how often an edit without If-Match is made again on what another edit left.
const staleTries = 5

type reasonRequest struct {
	Reason string `json:"reason" maxLength:"500" doc:"kept in the audit"`
}

func givenReason(c *fiber.Ctx) (string, error) {
	var ask reasonRequest
	if err := handlers.BindOptional(c, &ask); err != nil {
		return "", err
	}
	var check handlers.Check
	check.Text("body.reason", ask.Reason, 0, 500)
	return ask.Reason, check.Err()
}

// configure asks the brain for an edit, and lets this replica see it at once.
func configure(d *handlers.Deps, c *fiber.Ctx, what *engine.Configure) (*engine.Answer, error) {
	cmd := d.Command(handlers.CallerOf(c))
	cmd.Configure = what
	answer, err := d.Door.Do(c.UserContext(), cmd)
	if err != nil {
		return nil, err
	}
	d.Directory.Forget()
	return answer, nil
}

// edit changes what stands: read it, change it, and ask for it on the version that was read. With If-Match that version
// must be the one named; without, an edit that came between is taken into account.
func edit[T any](d *handlers.Deps, c *fiber.Ctx, read func() (T, int64, error), change func(*T) (*engine.Configure, error)) (*engine.Answer, error) {
	insisted := handlers.IfMatch(c)
	for try := 1; ; try++ {
		row, version, err := read()
		if err != nil {
			return nil, err
		}
		if insisted >= 0 && insisted != version {
			return nil, models.Errorf(models.Stale, "version %d stands; read the object again", version)
		}
		what, err := change(&row)
		if err != nil {
			return nil, err
		}
		what.Version = version
		answer, err := configure(d, c, what)
		if models.CodeOf(err) == models.Stale && insisted < 0 && try < staleTries {
			continue
		}
		return answer, err
	}
}
