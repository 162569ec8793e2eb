package handlers

import (
	"context"
	"encoding/json"

	"github.com/gofiber/fiber/v2"

	"nightshift/models"
)

// Call is one call of the API: its body is written as JSON, nil for none; headers come in pairs.
type Call struct {
	Method, Path string // the path with its query, escaped
	Body         any
	Headers      []string
}

// Reply is what the API answered: never a refusal, that is an error.
type Reply struct {
	Status   int
	Location string
	ETag     string
	Body     []byte
}

// Inside asks this replica's own API on behalf of a caller that is known already, so that a page does what the API does:
// the same scopes, the same reading of the body, the same refusals with their places, the same audit. web sets it.
type Inside func(ctx context.Context, caller *Caller, call Call) (*Reply, error)

// Into reads the body of a reply.
func (r *Reply) Into(v any) error {
	if err := json.Unmarshal(r.Body, v); err != nil {
		return models.Errorf(models.Internal, "the API's answer can't be read: %w", err)
	}
	return nil
}

type insideKey struct{}

// SetInside is for web: the caller of a call from inside. Nothing that comes over a network can set it.
func SetInside(set func(key, value any), caller *Caller) { set(insideKey{}, caller) }

// InsideCaller is who asks from inside, nil for a request from outside.
func InsideCaller(c *fiber.Ctx) *Caller {
	caller, _ := c.Context().UserValue(insideKey{}).(*Caller)
	return caller
}
