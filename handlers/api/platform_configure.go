package api

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/gofiber/fiber/v2"

	"nightshift/handlers"
	"nightshift/models"
	"nightshift/scheduler/engine"
)

const (
	editTries = 100                    // of an edit that names no version, each on what the edit before left
	editPause = 4 * time.Millisecond   // longest before the second try; before each further one as much more
	editRest  = 200 * time.Millisecond // never longer than that
)

// edits counts the tries of an edit that names no version.
type edits int

// again says whether an edit is tried once more, after a pause that draws those apart who edit the same thing at the same
// time. Otherwise it answers what the caller is told: who named no version is never told that it is stale.
func (n *edits) again(ctx context.Context, err error) (bool, error) {
	if models.CodeOf(err) != models.Stale {
		return false, err
	}
	if *n++; *n < editTries {
		select {
		case <-time.After(rand.N(min(time.Duration(*n)*editPause, editRest))):
			return true, nil
		case <-ctx.Done():
		}
	}
	return false, models.Errorf(models.StateConflict, "others change it all the time: send it again")
}

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

// absent is the version of what a PUT may make because it does not stand yet.
const absent = -1

// edit changes what stands: read it, change it, and ask for it on the version that was read. With If-Match that version
// must be one of those named; without, an edit that came between is taken into account.
func edit[T any](d *handlers.Deps, c *fiber.Ctx, read func() (T, int64, error), change func(*T) (*engine.Configure, error)) (*engine.Answer, error) {
	insisted := handlers.IfMatch(c)
	for tries := edits(0); ; {
		row, version, err := read()
		if err != nil {
			return nil, err
		}
		if err := insisted.Fits(version); err != nil {
			return nil, err
		}
		what, err := change(&row)
		if err != nil {
			return nil, err
		}
		what.Version = max(version, 0)
		answer, err := configure(d, c, what)
		if insisted.OfVersion() {
			return answer, err
		}
		more, err := tries.again(c.UserContext(), err)
		if !more {
			return answer, err
		}
	}
}
