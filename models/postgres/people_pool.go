package postgres

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"nightshift/models"
)

// People reads and writes what people own: keys, users, sessions, signing keys, stored answers. Decisions never read
// these rows, and what decisions read is never written here.
type People struct {
	pool  *pgxpool.Pool
	vault *Vault
	begin pgx.TxOptions // a transaction as the role that sees all tenants
}

// NewPeople works on a pool whose connections may come and go.
func NewPeople(pool *pgxpool.Pool, vault *Vault) *People {
	role := pgx.Identifier{pool.Config().ConnConfig.Database + "_engine"}.Sanitize()
	return &People{pool: pool, vault: vault, begin: pgx.TxOptions{BeginQuery: "BEGIN; SET LOCAL ROLE " + role}}
}

// Now is the database's clock.
func (p *People) Now(ctx context.Context) (models.Instant, error) {
	var micros int64
	err := p.pool.QueryRow(ctx, `SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint`).Scan(&micros)
	return models.Instant(micros), peopleError(err)
}

// as runs do in a transaction as the role that sees all tenants: the login itself sees nothing.
func (p *People) as(ctx context.Context, do func(pgx.Tx) error) error {
	return pgx.BeginTxFunc(ctx, p.pool, p.begin, do)
}

// peopleError gives a failure of the database the code of what a caller can do about it.
func peopleError(err error) error {
	var known *models.Error
	var server *pgconn.PgError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &known):
		return err
	case errors.As(err, &server):
		switch server.Code[:2] {
		case "08", "53", "57", "40", "55":
			return models.Errorf(models.Unavailable, "the database can't answer now: %w", err)
		}
		return models.Errorf(models.Internal, "the database refused: %w", err)
	}
	return models.Errorf(models.Unavailable, "the database can't be reached: %w", err)
}
