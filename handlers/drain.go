package handlers

import (
	"context"
	"errors"

	"github.com/gofiber/fiber/v2"
)

// ErrEnding is the cause of a poll's or stream's context that ended because the server is about to end.
var ErrEnding = errors.New("the server is about to end")

type drainKey struct{}

// WithDrain gives the context of requests: what is under way may finish under it, while polls and streams see by drain
// that the server is about to end.
func WithDrain(ctx, drain context.Context) context.Context {
	return context.WithValue(ctx, drainKey{}, drain)
}

// UntilDrain gives a context for polls and streams: it ends with ctx, and as soon as the server is about to end.
func UntilDrain(ctx context.Context) (inner context.Context, stop func()) {
	inner, cancel := context.WithCancelCause(ctx)
	drain, ok := ctx.Value(drainKey{}).(context.Context)
	if !ok {
		return inner, func() { cancel(nil) }
	}
	forget := context.AfterFunc(drain, func() { cancel(ErrEnding) })
	return inner, func() {
		forget()
		cancel(nil)
	}
}

// Watch is Attend for polls and streams: the context also ends as soon as the server is about to end.
func Watch(c *fiber.Ctx) (ctx context.Context, stop func()) {
	attended, leave := Attend(c)
	ctx, end := UntilDrain(attended)
	return ctx, func() {
		end()
		leave()
	}
}
