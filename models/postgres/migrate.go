package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"

	"nightshift/migrations"
)

// Migrate brings the schema up to date, as its owner and under a lock: replicas may start together.
func (db *DB) Migrate(ctx context.Context) error {
	config, err := pgx.ParseConfig(db.options.OwnerURL)
	if err != nil {
		return errors.New("DATABASE_OWNER_URL is not a URL of PostgreSQL")
	}
	Queued(&config.Config)
	conns := stdlib.OpenDB(*config)
	defer conns.Close()
	locker, err := lock.NewPostgresSessionLocker(lock.WithLockTimeout(1, 300), lock.WithUnlockTimeout(1, 5)) // seconds, tries
	if err != nil {
		return err
	}
	provider, err := goose.NewProvider(goose.DialectPostgres, conns, migrations.FS, goose.WithSessionLocker(locker))
	if err != nil {
		return err
	}
	began := time.Now()
	results, err := provider.Up(ctx)
	if err != nil {
		return fmt.Errorf("migrating: %w", err)
	}
	if len(results) > 0 {
		db.log.Info("migrated", "steps", len(results), "took", time.Since(began).Round(time.Millisecond))
	}
	_, err = conns.ExecContext(ctx, `GRANT SELECT ON goose_db_version TO `+pgx.Identifier{db.app}.Sanitize()+`, `+pgx.Identifier{db.engine}.Sanitize())
	return err
}

// Migrated says whether the schema has every step that this program knows.
func (db *DB) Migrated(ctx context.Context) (bool, error) {
	var last int64
	err := db.For(Scope{}).Read(ctx, func(tx pgx.Tx) error {
		return tx.QueryRow(ctx, `SELECT coalesce(max(version_id), 0) FROM goose_db_version WHERE is_applied`).Scan(&last)
	})
	var pg *pgconn.PgError
	if errors.As(err, &pg) && pg.Code == "42P01" {
		return false, nil
	}
	return err == nil && last >= db.known, err
}
