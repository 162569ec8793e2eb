package api

import (
	"errors"
	"slices"

	"github.com/gofiber/fiber/v2"

	"nightshift/handlers"
	"nightshift/models"
	"nightshift/scheduler/engine"
)

// The answers of dry runs: the thing as it would stand, without an id, and why it would be refused.
type (
	tenantDry struct {
		Tenant
		Refusals []RefusalView `json:"refusals"`
	}
	environmentDry struct {
		Environment
		Refusals []RefusalView `json:"refusals"`
	}
	laneDry struct {
		Lane
		Refusals []RefusalView `json:"refusals"`
	}
	keyDry struct {
		APIKey
		ID       *string       `json:"id"`
		ClientID *string       `json:"client_id"`
		Refusals []RefusalView `json:"refusals"`
	}
)

// dryable is the row of a creating call that can be tried.
func dryable(r handlers.Route, tried any) handlers.Route {
	r.Doc.Query = append(r.Doc.Query, dryParam...)
	r.Doc.Replies[fiber.StatusOK] = tried
	return r
}

// wouldConfigure asks the brain whether it would make something, and makes nothing.
func wouldConfigure(d *handlers.Deps, c *fiber.Ctx, what *engine.Configure, before ...error) ([]RefusalView, error) {
	what.New, what.Dry = true, true
	_, err := configure(d, c, what)
	return refusalsOf(append(before, err)...)
}

// refusable are the codes of what refuses a call for how things stand, and not for how it is sent.
var refusable = []models.Code{models.StateConflict, models.Forbidden, models.PermissionNotAllowed, models.TenantSuspended, models.QueueFull}

// refusalsOf are the errors that a dry run tells; any other is the answer itself, as where nobody can decide now.
func refusalsOf(errs ...error) ([]RefusalView, error) {
	out := []RefusalView{}
	for _, err := range errs {
		var known *models.Error
		if err == nil {
			continue
		}
		if !errors.As(err, &known) || !slices.Contains(refusable, known.Code) {
			return nil, err
		}
		out = append(out, RefusalView{known.Code, known.Detail, handlers.List(known.Fields)})
	}
	return out, nil
}
