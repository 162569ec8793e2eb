package store

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"nightshift/models"
)

//go:embed raw.sql
var rawSQL string

// raw is the limit: its own table, its own connection, the settings that make its three statements quickest.
type raw struct {
	conn                  *pgx.Conn
	insert, start, finish string
}

func openRaw(ctx context.Context, dsn string) (*raw, error) {
	config, err := pgx.ParseConfig(dsn)
	if err != nil {
		return nil, err
	}
	for _, off := range []string{"enable_seqscan", "enable_hashjoin", "enable_mergejoin", "enable_bitmapscan", "jit"} {
		config.RuntimeParams[off] = "off"
	}
	config.RuntimeParams["plan_cache_mode"] = "force_generic_plan"
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return nil, err
	}
	part := strings.Split(rawSQL, strings.Repeat("-", 80))
	statement := func(i int) string { _, text, _ := strings.Cut(part[i], "\n"); return strings.TrimSpace(text) }
	if _, err := conn.Exec(ctx, statement(1)); err != nil {
		return nil, fmt.Errorf("making the raw table: %w", err)
	}
	return &raw{conn: conn, insert: statement(2), start: statement(3), finish: statement(4)}, nil
}

// lifeCycles does n tasks in batches.
func (r *raw) lifeCycles(ctx context.Context, n, batch int, payload json.RawMessage) error {
	ids, workers := make([][16]byte, batch), make([][16]byte, batch)
	payloads, results := make([]string, batch), make([]string, batch)
	worker := newID(models.Instant(1))
	for range n / batch {
		for i := range ids {
			ids[i], workers[i], payloads[i], results[i] = newID(models.Instant(1)), worker, string(payload), result
		}
		if _, err := r.conn.Exec(ctx, r.insert, ids, payloads); err != nil {
			return err
		}
		if _, err := r.conn.Exec(ctx, r.start, ids, workers); err != nil {
			return err
		}
		if _, err := r.conn.Exec(ctx, r.finish, ids, results); err != nil {
			return err
		}
	}
	return nil
}
