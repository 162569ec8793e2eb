package pgtest_test

import (
	"net/url"
	"slices"
	"strings"
	"testing"

	"nightshift/models/postgres"
	"nightshift/models/postgres/pgtest"
)

// rights is who owns and may do what in a database, and what its policies say.
const rights = `
SELECT 'relation ' || relname || ' ' || relkind::text || ' ' || relowner::regrole::text || ' ' || relrowsecurity || relforcerowsecurity || ' ' ||
       coalesce((SELECT string_agg(x::text, ' ' ORDER BY x::text) FROM unnest(relacl) x), '')
FROM pg_class WHERE relnamespace = 'public'::regnamespace
UNION ALL SELECT 'column ' || attrelid::regclass || '.' || attname || ' ' || attacl::text FROM pg_attribute WHERE attacl IS NOT NULL AND attrelid::regclass::text NOT LIKE 'pg\_%'
UNION ALL SELECT 'function ' || proname || ' ' || proowner::regrole::text || ' ' || coalesce(proacl::text, '') FROM pg_proc WHERE pronamespace = 'public'::regnamespace
UNION ALL SELECT 'type ' || typname || ' ' || typowner::regrole::text || ' ' || coalesce(typacl::text, '') FROM pg_type WHERE typnamespace = 'public'::regnamespace
UNION ALL SELECT 'schema ' || nspname || ' ' || coalesce((SELECT string_agg(x::text, ' ' ORDER BY x::text) FROM unnest(nspacl) x), '') FROM pg_namespace WHERE nspname = 'public'
UNION ALL SELECT 'policy ' || p::text FROM pg_policies p
UNION ALL SELECT 'default ' || defaclrole::regrole::text || ' ' || defaclacl::text FROM pg_default_acl
UNION ALL SELECT 'step ' || version_id FROM goose_db_version`

func TestACopyIsAsIfItHadBeenMigratedItself(t *testing.T) {
	tell := func(dsn string) []string {
		db, err := postgres.Open(t.Context(), postgres.Options{URL: dsn, PoolSize: 2})
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		if err := db.Migrate(t.Context()); err != nil {
			t.Fatal(err)
		}
		u, err := url.Parse(dsn)
		if err != nil {
			t.Fatal(err)
		}
		rows, err := connect(t, dsn).Query(t.Context(), rights)
		if err != nil {
			t.Fatal(err)
		}
		defer rows.Close()
		var told []string
		for rows.Next() {
			var line string
			if err := rows.Scan(&line); err != nil {
				t.Fatal(err)
			}
			told = append(told, strings.ReplaceAll(line, strings.TrimPrefix(u.Path, "/"), "it"))
		}
		if err := rows.Err(); err != nil {
			t.Fatal(err)
		}
		slices.Sort(told)
		return told
	}
	migrated, copied := tell(pgtest.New(t)), tell(pgtest.Migrated(t))
	if len(migrated) < 200 {
		t.Errorf("only %d lines are compared", len(migrated))
	}
	for _, line := range migrated {
		if !slices.Contains(copied, line) {
			t.Errorf("a copy lacks: %s", line)
		}
	}
	for _, line := range copied {
		if !slices.Contains(migrated, line) {
			t.Errorf("only a copy has: %s", line)
		}
	}
}

// A copy takes nothing but what is its own: its login is dropped with it, also that of the first copy.
func TestACopyTakesNothingElse(t *testing.T) {
	dsn := pgtest.Migrated(t)
	var owned []string
	err := connect(t, pgtest.Admin(t, dsn)).QueryRow(t.Context(), `SELECT coalesce(array_agg(datname::text), '{}') FROM pg_database
		WHERE datdba::regrole::text <> CURRENT_USER AND datname LIKE 'template%'`).Scan(&owned)
	if err != nil || len(owned) > 0 {
		t.Errorf("templates that belong to a copy's login: %v, %v", owned, err)
	}
}

func BenchmarkMigrated(b *testing.B) {
	for b.Loop() {
		pgtest.Migrated(b)
	}
}

func BenchmarkNewAndMigrate(b *testing.B) {
	for b.Loop() {
		db, err := postgres.Open(b.Context(), postgres.Options{URL: pgtest.New(b), PoolSize: 2})
		if err != nil {
			b.Fatal(err)
		}
		if err := db.Migrate(b.Context()); err != nil {
			b.Fatal(err)
		}
		db.Close()
	}
}
