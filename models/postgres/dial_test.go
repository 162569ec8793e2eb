package postgres_test

import (
	"context"
	"errors"
	"net"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"nightshift/models/postgres"
)

// A full queue is waited for as long as the caller has time; whatever else goes wrong is told at once.
func TestAFullQueueIsWaitedFor(t *testing.T) {
	full := &net.OpError{Op: "dial", Err: syscall.EAGAIN}
	asked := 0
	var answers func() error
	config := &pgconn.Config{DialFunc: func(context.Context, string, string) (net.Conn, error) {
		asked++
		return nil, answers()
	}}
	postgres.Queued(config)
	refused := &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}
	answers = func() error {
		if asked < 4 {
			return full
		}
		return refused
	}
	if _, err := config.DialFunc(t.Context(), "unix", "/tmp/x"); !errors.Is(err, syscall.ECONNREFUSED) || asked != 4 {
		t.Errorf("asked %d times, then %v", asked, err)
	}
	answers = func() error { return full }
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
	defer cancel()
	if _, err := config.DialFunc(ctx, "unix", "/tmp/x"); !errors.Is(err, syscall.EAGAIN) || ctx.Err() == nil {
		t.Errorf("it gave up with %v before its time", err)
	}
}
