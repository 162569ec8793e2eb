//go:build !linux

package handlers

import (
	"context"
	"errors"

	"github.com/gofiber/fiber/v2"
)

// ErrClientGone is the cause of a context that ended because nobody waits for the answer any more.
var ErrClientGone = errors.New("the client is gone")

// Attend gives a context that ends when the server cuts what takes too long at its end, or stop is called; a peer that leaves is not noticed here.
func Attend(c *fiber.Ctx) (ctx context.Context, stop func()) {
	inner, cancel := context.WithCancelCause(c.UserContext())
	return inner, func() { cancel(nil) }
}
