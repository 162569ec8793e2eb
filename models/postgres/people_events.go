package postgres

import (
	"context"
	"encoding/json"

	"github.com/jackc/pgx/v5"

	"nightshift/models"
)

// PackedEvents is what happened in one environment in one batch, in order.
type PackedEvents struct {
	Batch int64
	Env   int32
	Items []models.Event
}

// Events reads the packed rows of some environments (nil: all) above a batch, in order of (batch, environment), at most
// limit of them.
func (db *DB) Events(ctx context.Context, envs []int32, after int64, limit int) ([]PackedEvents, error) {
	var out []PackedEvents
	err := db.Platform().Read(ctx, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, `SELECT batch, env, items FROM events
			WHERE batch > $1 AND ($2::int4[] IS NULL OR env = ANY ($2)) ORDER BY batch, env LIMIT $3`, after, envs, limit)
		if err != nil {
			return err
		}
		out, err = pgx.CollectRows(rows, readPacked)
		return err
	})
	return out, err
}

func readPacked(row pgx.CollectableRow) (PackedEvents, error) {
	var p PackedEvents
	var items []byte
	if err := row.Scan(&p.Batch, &p.Env, &items); err != nil {
		return p, err
	}
	err := json.Unmarshal(items, &p.Items)
	for i := range p.Items {
		p.Items[i].Env = p.Env
	}
	return p, err
}

// EventRange asks for packed rows of one environment from a batch to another, both included.
type EventRange struct {
	Env      int32
	From, To int64
	Desc     bool // the last batch first
	Limit    int
}

// EventsBetween reads packed rows of a range.
func (db *DB) EventsBetween(ctx context.Context, ask EventRange) (out []PackedEvents, err error) {
	query := `SELECT batch, env, items FROM events WHERE batch BETWEEN $1 AND $2 AND env = $3 ORDER BY batch LIMIT $4`
	if ask.Desc {
		query = `SELECT batch, env, items FROM events WHERE batch BETWEEN $1 AND $2 AND env = $3 ORDER BY batch DESC LIMIT $4`
	}
	err = db.Platform().Read(ctx, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, query, ask.From, ask.To, ask.Env, ask.Limit)
		if err != nil {
			return err
		}
		out, err = pgx.CollectRows(rows, readPacked)
		return err
	})
	return out, err
}

// OldestEvents is the batch of the oldest events kept, 0 when there are none.
func (db *DB) OldestEvents(ctx context.Context) (int64, error) {
	return db.oneBatch(ctx, `SELECT coalesce(min(batch), 0) FROM events`)
}

// LastBatch is the last committed batch.
func (db *DB) LastBatch(ctx context.Context) (int64, error) {
	return db.oneBatch(ctx, `SELECT coalesce(max(batch), 0) FROM batches`)
}

func (db *DB) oneBatch(ctx context.Context, query string) (batch int64, err error) {
	err = db.Platform().Read(ctx, func(tx pgx.Tx) error { return tx.QueryRow(ctx, query).Scan(&batch) })
	return batch, err
}
