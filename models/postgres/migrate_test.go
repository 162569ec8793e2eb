package postgres_test

import (
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"

	"nightshift/migrations"
	"nightshift/models/postgres"
	"nightshift/models/postgres/pgtest"
)

// TestMigrationsGoBackAndForth takes every step after the first back and makes it again: what was released can be undone.
func TestMigrationsGoBackAndForth(t *testing.T) {
	url := pgtest.New(t)
	db, err := postgres.Open(t.Context(), postgres.Options{URL: url, PoolSize: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err := db.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	config, err := pgx.ParseConfig(url)
	if err != nil {
		t.Fatal(err)
	}
	conns := stdlib.OpenDB(*config)
	defer conns.Close()
	steps, err := goose.NewProvider(goose.DialectPostgres, conns, migrations.FS)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := steps.DownTo(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	if err := db.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	if whole, err := db.Migrated(t.Context()); err != nil || !whole {
		t.Errorf("migrated: %v, %v", whole, err)
	}
}
