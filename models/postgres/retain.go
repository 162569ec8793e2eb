package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"nightshift/models"
)

// How long is kept what nobody asks for any more.
const (
	keepDone     = 10 * 60       // seconds: resends come within minutes
	keepEvents   = 7 * 24 * 3600 // a reader may resume for a day; batches are kept as long as their events
	retainAtMost = 5000          // rows a table and call
)

// Retain deletes the oldest rows past their time, a bounded number a call, and says how many of each table went. Any
// replica may call it, about once a minute.
func (db *DB) Retain(ctx context.Context, now models.Instant) (map[string]int64, error) {
	gone := map[string]int64{}
	ended := func(seconds int) int64 { return int64(now.Add(-models.Seconds(seconds))) }
	for _, rule := range []struct {
		table, sql string
		before     int64
	}{
		{"done", `DELETE FROM done WHERE command IN (SELECT command FROM done WHERE at < $1 LIMIT $2)`, ended(keepDone)},
		{"events", `WITH old AS (
				SELECT batch FROM (SELECT batch, at FROM batches WHERE cell = 1 ORDER BY batch LIMIT $2) oldest WHERE at < $1
			), forgotten AS (DELETE FROM batches b USING old WHERE b.cell = 1 AND b.batch = old.batch)
			DELETE FROM events e USING old WHERE e.batch = old.batch`, ended(keepEvents)},
		{"sessions", `DELETE FROM sessions WHERE token_sha256 IN (
				SELECT token_sha256 FROM sessions WHERE expires_at < timestamptz 'epoch' + $1 * interval '1 microsecond' LIMIT $2)`, ended(keepDone)},
	} {
		err := db.Platform().Write(ctx, func(tx pgx.Tx) error {
			tag, err := tx.Exec(ctx, rule.sql, rule.before, retainAtMost)
			gone[rule.table] = tag.RowsAffected()
			return err
		})
		if err != nil {
			return gone, classify(err)
		}
	}
	return gone, nil
}
