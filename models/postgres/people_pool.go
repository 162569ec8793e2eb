package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"nightshift/models"
)

// People reads and writes what people own: keys, users, sessions, signing keys, stored answers. Decisions never read
// these rows, and what decisions read is never written here.
type People struct {
	db    *DB
	vault *Vault
}

// NewPeople works on the pool, as the role that sees every tenant: its statements name the tenant themselves.
func NewPeople(db *DB, vault *Vault) *People { return &People{db: db, vault: vault} }

// Now is the database's clock.
func (p *People) Now(ctx context.Context) (models.Instant, error) {
	var micros int64
	err := p.db.begun(ctx, func(func()) error {
		return p.db.pool.QueryRow(ctx, `SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint`).Scan(&micros)
	})
	return models.Instant(micros), peopleError(err)
}

// as runs do in a transaction as the role that sees all tenants: the login itself sees nothing.
func (p *People) as(ctx context.Context, do func(pgx.Tx) error) error {
	return p.db.Platform().Write(ctx, do)
}

// peopleError gives a failure of the database a code that may reach a caller: those of the loop's rules do not.
func peopleError(err error) error {
	err = classify(err)
	switch models.CodeOf(err) {
	case models.Rollback, models.FenceLost:
		return models.Errorf(models.Unavailable, "the database could not do this now: %w", err)
	case models.BadData, models.RowCount:
		return models.Errorf(models.Internal, "the database refused: %w", err)
	}
	return err
}
