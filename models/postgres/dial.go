package postgres

import (
	"context"
	"errors"
	"net"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// queueAgain is how soon a full queue is tried once more.
const queueAgain = 5 * time.Millisecond

// Queued makes the connections of config wait where a Unix socket's queue is full, as long as their context lets them. The kernel
// says so at once (EAGAIN), where a TCP connection would be tried again: a server that forks slowly for a moment is not gone.
func Queued(config *pgconn.Config) {
	dial := config.DialFunc
	config.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
		for {
			conn, err := dial(ctx, network, address)
			if !errors.Is(err, syscall.EAGAIN) {
				return conn, err
			}
			select {
			case <-ctx.Done():
				return nil, err
			case <-time.After(queueAgain):
			}
		}
	}
}

// connect is pgx.Connect that waits in the queue. Its errors name no more of the address than pgx's own do.
func connect(ctx context.Context, url string) (*pgx.Conn, error) {
	config, err := pgx.ParseConfig(url)
	if err != nil {
		return nil, err
	}
	Queued(&config.Config)
	return pgx.ConnectConfig(ctx, config)
}
