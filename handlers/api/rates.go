package api

import (
	"net/url"

	"github.com/gofiber/fiber/v2"

	"nightshift/handlers"
	"nightshift/models"
	"nightshift/scheduler/engine"
)

// RateView is a rate limit of an environment.
type RateView struct {
	Key        string        `json:"key"`
	Limit      int64         `json:"limit" doc:"tasks of the key that may start in any per_seconds"`
	PerSeconds int64         `json:"per_seconds"`
	Burst      int64         `json:"burst" doc:"of those, at once"`
	CreatedAt  handlers.Time `json:"created_at"`
	UpdatedAt  handlers.Time `json:"updated_at"`
	Version    int64         `json:"version"`
}

// RateInput sets a rate limit.
type RateInput struct {
	Limit      handlers.Opt[int64] `json:"limit" required:"true"`
	PerSeconds handlers.Opt[int64] `json:"per_seconds" required:"true"`
	Burst      handlers.Opt[int64] `json:"burst" doc:"as many as limit when left out"`
}

const (
	mostRate       = 10_000_000
	mostPerSeconds = 30 * 24 * 3600
)

func (w *Work) rateRoutes() []handlers.Route {
	read := []string{handlers.TasksRead, handlers.AdminRead}
	write := []string{handlers.AdminWrite}
	return tenantRoutes(
		handlers.Route{Method: "GET", Path: "/v1/rate-limits", Scopes: read, Handler: w.rates, Doc: handlers.Doc{
			Tag: "tasks", Summary: "List rate limits", Query: handlers.ByNameParams(), Replies: map[int]any{200: handlers.Page[RateView]{}},
		}},
		handlers.Route{Method: "GET", Path: "/v1/rate-limits/:key", Scopes: read, Handler: w.rate, Doc: handlers.Doc{
			Tag: "tasks", Summary: "Read a rate limit", Replies: map[int]any{200: RateView{}},
		}},
		handlers.Route{Method: "PUT", Path: "/v1/rate-limits/:key", Scopes: write, Handler: w.putRate, Doc: handlers.Doc{
			Tag: "tasks", Summary: "Set a rate limit", Detail: "What started lately under an earlier limit of the key still counts.",
			Body: RateInput{}, Replies: map[int]any{200: RateView{}, 201: RateView{}},
		}},
		handlers.Route{Method: "DELETE", Path: "/v1/rate-limits/:key", Scopes: write, Handler: w.deleteRate, Doc: handlers.Doc{
			Tag: "tasks", Summary: "Lift a rate limit", Detail: "Its key holds nothing back any more.", Replies: map[int]any{204: nil},
		}},
	)
}

func viewRate(r models.RateLimit) RateView {
	v := RateView{Key: r.Key, Limit: r.Limit, PerSeconds: r.PerSeconds, Burst: r.Burst, CreatedAt: handlers.Time(r.CreatedAt), UpdatedAt: handlers.Time(r.UpdatedAt), Version: r.Version}
	if v.Burst == 0 {
		v.Burst = v.Limit
	}
	return v
}

// rates lists the rate limits by key.
func (w *Work) rates(d *handlers.Deps, c *fiber.Ctx) error {
	caller := handlers.CallerOf(c)
	return byName(d, c, func(after string, desc bool, most int) ([]models.RateLimit, int64, error) {
		return w.Reads.RateLimits(c.UserContext(), caller.Scope(), caller.Env, after, desc, most)
	}, viewRate, func(r models.RateLimit) string { return r.Key })
}

func (w *Work) rateNamed(c *fiber.Ctx) (models.RateLimit, error) {
	key, err := handlers.PathParam(c, "key")
	if err != nil {
		return models.RateLimit{}, err
	}
	caller := handlers.CallerOf(c)
	row, err := w.Reads.RateLimit(c.UserContext(), caller.Scope(), caller.Env, key)
	if models.CodeOf(err) == models.NotFound { // what is set next carries its name
		row.Env, row.Key = caller.Env, key
	}
	return row, err
}

func (w *Work) rate(_ *handlers.Deps, c *fiber.Ctx) error {
	row, err := w.rateNamed(c)
	if err != nil {
		return err
	}
	handlers.SetETag(c, row.Version)
	return handlers.Answer(c, fiber.StatusOK, viewRate(row))
}

// terms writes the given terms over a limit and checks them.
func (in *RateInput) terms(to *models.RateLimit) error {
	var k handlers.Check
	k.That(in.Limit.Given && !in.Limit.Null, "body.limit", "is required")
	k.That(in.PerSeconds.Given && !in.PerSeconds.Null, "body.per_seconds", "is required")
	if err := k.Err(); err != nil {
		return err
	}
	to.Limit, to.PerSeconds, to.Burst = in.Limit.Value, in.PerSeconds.Value, 0
	handlers.Range(&k, "body.limit", to.Limit, 1, mostRate)
	handlers.Range(&k, "body.per_seconds", to.PerSeconds, 1, mostPerSeconds)
	if in.Burst.Given && !in.Burst.Null {
		to.Burst = in.Burst.Value
		handlers.Range(&k, "body.burst", to.Burst, 1, mostRate)
	}
	return k.Err()
}

// putRate sets a rate limit, from nothing or over the one that stands.
func (w *Work) putRate(d *handlers.Deps, c *fiber.Ctx) error {
	var in RateInput
	if err := handlers.Bind(c, &in); err != nil {
		return err
	}
	read := func() (models.RateLimit, int64, error) {
		row, err := w.rateNamed(c)
		if models.CodeOf(err) == models.NotFound && row.Key != "" {
			return row, absent, nil
		}
		return row, row.Version, err
	}
	answer, err := edit(d, c, read, func(r *models.RateLimit) (*engine.Configure, error) {
		if len(r.Key) > maxKeyBytes {
			return nil, models.Invalid("path.key", "a key has at most %d bytes", maxKeyBytes)
		}
		err := in.terms(r)
		return &engine.Configure{Rate: r, Action: "rate_limit.put"}, err
	})
	if err != nil {
		return err
	}
	status := fiber.StatusOK
	if answer.Rate.Version == 1 {
		status = fiber.StatusCreated
		c.Location("/v1/rate-limits/" + url.PathEscape(answer.Rate.Key))
	}
	handlers.SetETag(c, answer.Rate.Version)
	return handlers.Answer(c, status, viewRate(*answer.Rate))
}

func (w *Work) deleteRate(d *handlers.Deps, c *fiber.Ctx) error {
	read := func() (models.RateLimit, int64, error) {
		row, err := w.rateNamed(c)
		return row, row.Version, err
	}
	_, err := edit(d, c, read, func(r *models.RateLimit) (*engine.Configure, error) {
		return &engine.Configure{DeleteRate: &models.RateRef{Env: r.Env, Key: r.Key}, Action: "rate_limit.delete"}, nil
	})
	if err != nil {
		return err
	}
	return handlers.NoContent(c)
}
