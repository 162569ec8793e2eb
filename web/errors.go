package web

import (
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/gofiber/fiber/v2"

	"nightshift/handlers"
	"nightshift/models"
)

// statuses is the one map from codes to HTTP.
var statuses = map[models.Code]int{
	models.InvalidJSON: 400, models.InvalidQuery: 400, models.InvalidRequest: 400, models.InvalidScope: 400,
	models.UnsupportedGrantType: 400, models.SessionRequired: 400, models.TenantRequired: 400, models.InvalidCursor: 400,
	models.Unauthenticated: 401, models.InvalidClient: 401,
	models.Forbidden: 403, models.ScopeRequired: 403, models.PermissionNotAllowed: 403, models.TenantSuspended: 403,
	models.NotFound: 404, models.MethodNotAllowed: 405,
	models.StateConflict: 409, models.LeaseLost: 409, models.SessionReplaced: 409, models.InstanceConflict: 409,
	models.IdempotencyInProgress: 409, models.WorkflowBudgetExceeded: 409,
	models.Stale: 412, models.BodyTooLarge: 413, models.UnsupportedMediaType: 415,
	models.ValidationFailed: 422, models.IdempotencyKeyReused: 422, models.InvalidDAG: 422, models.InvalidSchedule: 422,
	models.SchemaChanged: 503, models.QueueFull: 429, models.RateLimited: 429, models.BudgetExhausted: 429, models.TooManyClasses: 429, models.TooManyAttempts: 429,
	models.Unavailable: 503, models.Overloaded: 503,
	// The store's own words: nothing was changed, or nobody can tell yet; asking again is right.
	models.FenceLost: 503, models.Rollback: 503, models.Unclear: 503,
	models.BadData: 422, models.RowCount: 503,
	models.Internal: 500,
}

// Problem is an answer that refuses, in the form of RFC 9457.
type Problem struct {
	Type      string              `json:"type"`
	Title     string              `json:"title"`
	Status    int                 `json:"status"`
	Detail    string              `json:"detail"`
	Instance  string              `json:"instance"`
	Code      models.Code         `json:"code"`
	RequestID string              `json:"request_id"`
	Errors    []models.FieldError `json:"errors,omitempty"`
	// OAuth is the word OAuth 2 expects in answers of the token endpoint.
	OAuth models.Code `json:"error,omitempty"`
}

const problemType = "application/problem+json"

// tokenPath is the one endpoint whose problems carry OAuth's member.
const tokenPath = "/v1/auth/token"

// problemOf says how an error looks to a caller. What happened inside stays inside: the log has it.
func problemOf(c *fiber.Ctx, err error) (p Problem, retryAfter int) {
	e := knownError(err)
	p = Problem{Type: "about:blank", Code: e.Code, Detail: e.Detail, Instance: c.Path(), RequestID: handlers.RequestID(c), Errors: unsaid(e.Fields)}
	p.Status = statuses[e.Code]
	var lib *fiber.Error
	if errors.As(err, &lib) && lib.Code >= 400 && lib.Code < 500 {
		p.Status = lib.Code
	}
	switch p.Code {
	case models.Internal:
		p.Detail = "something failed here; the request id finds it in the log"
	case models.FenceLost, models.Rollback, models.Unclear, models.RowCount, models.Unavailable:
		if p.Code != models.Unavailable || errors.Unwrap(e) != nil {
			p.Detail = "this can't be answered now; ask again"
		}
		p.Code = models.Unavailable
	case models.BadData:
		p.Code, p.Detail = models.ValidationFailed, "a value can't be stored"
	}
	p.Title = http.StatusText(p.Status)
	if p.Status == 429 || p.Status == 503 || p.Code == models.IdempotencyInProgress {
		retryAfter = max(1, e.RetryAfterSeconds)
	}
	if p.Instance == tokenPath {
		p.OAuth = p.Code
	}
	return p, retryAfter
}

// knownError finds the code of whatever a handler or the framework returned.
func knownError(err error) *models.Error {
	var e *models.Error
	var lib *fiber.Error
	switch {
	case errors.As(err, &e):
		if _, ok := statuses[e.Code]; !ok {
			return models.Errorf(models.Internal, "the code %q has no status: %w", e.Code, err)
		}
		return e
	case errors.As(err, &lib):
		switch {
		case lib.Code == 404:
			return models.Errorf(models.NotFound, "there is no such endpoint")
		case lib.Code == 405:
			return models.Errorf(models.MethodNotAllowed, "this endpoint does not take that method")
		case lib.Code == 413:
			return models.Errorf(models.BodyTooLarge, "the body is too large")
		case lib.Code < 500:
			return models.Errorf(models.InvalidRequest, "the request can't be read: %s", strings.ToLower(http.StatusText(lib.Code)))
		}
	}
	return models.Errorf(models.Internal, "%w", err)
}

// unsaid drops the echo of values that may be large or secret.
func unsaid(fields []models.FieldError) []models.FieldError {
	out := slices.Clone(fields)
	for i, f := range out {
		root := f.Location == "body"
		for _, word := range []string{"payload", "secret", "value", "password", "client_secret"} {
			root = root || strings.Contains(f.Location, "."+word)
		}
		if text, ok := f.Value.(string); root || ok && len(text) > 200 {
			out[i].Value = nil
		}
	}
	return out
}

// writeProblem answers an error.
func writeProblem(c *fiber.Ctx, err error) error {
	p, retryAfter := problemOf(c, err)
	if retryAfter > 0 {
		c.Set(fiber.HeaderRetryAfter, strconv.Itoa(retryAfter))
	}
	if p.Status == 401 {
		challenge := `Bearer realm="nightshift"`
		if p.Instance == tokenPath {
			challenge = `Basic realm="nightshift"`
		}
		c.Set(fiber.HeaderWWWAuthenticate, challenge)
	}
	body, err := json.Marshal(p)
	if err != nil {
		return c.SendStatus(fiber.StatusInternalServerError)
	}
	c.Set(fiber.HeaderContentType, problemType)
	c.Set(fiber.HeaderCacheControl, "no-store")
	return c.Status(p.Status).Send(body)
}
