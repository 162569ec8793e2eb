package handlers

import (
	"context"
	"sync/atomic"
	"time"

	"nightshift/models"
)

// Clock is the database's clock as this replica knows it: its own monotonic clock with a measured offset, so that a
// wrong or jumping wall clock here changes nothing.
type Clock struct {
	began  time.Time
	offset atomic.Int64 // microseconds since 1970 at began, by the database
}

// NewClock begins with this machine's clock; Set makes it the database's.
func NewClock() *Clock {
	c := &Clock{began: time.Now()}
	c.offset.Store(c.began.UnixMicro())
	return c
}

// Now is the moment.
func (c *Clock) Now() models.Instant {
	return models.Instant(c.offset.Load() + time.Since(c.began).Microseconds())
}

// Set measures the offset: ask tells the database's time; half the round trip is taken for the way back.
func (c *Clock) Set(ctx context.Context, ask func(context.Context) (models.Instant, error)) error {
	sent := time.Since(c.began)
	at, err := ask(ctx)
	if err != nil {
		return err
	}
	middle := (sent + time.Since(c.began)) / 2
	c.offset.Store(int64(at) - middle.Microseconds())
	return nil
}
