package pgtest_test

import (
	"context"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"nightshift/models/postgres/pgtest"
)

func connect(t *testing.T, dsn string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(context.Background(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

func TestNewGivesAProductionLikeLogin(t *testing.T) {
	dsn := pgtest.New(t)
	ctx, conn := context.Background(), connect(t, dsn)
	var super, bypass, createRole, owner bool
	err := conn.QueryRow(ctx, `SELECT rolsuper, rolbypassrls, rolcreaterole, datdba = r.oid FROM pg_roles r, pg_database
		WHERE rolname = current_user AND datname = current_database()`).Scan(&super, &bypass, &createRole, &owner)
	if err != nil {
		t.Fatal(err)
	}
	if super || bypass || !createRole || !owner {
		t.Errorf("superuser %v, BYPASSRLS %v, may create roles %v, owns its database %v", super, bypass, createRole, owner)
	}
}

func TestDatabasesAreApartAndDropped(t *testing.T) {
	ctx := context.Background()
	var dropped string
	outer := pgtest.New(t)
	t.Run("inner", func(t *testing.T) {
		inner := pgtest.New(t)
		u, err := url.Parse(inner)
		if err != nil {
			t.Fatal(err)
		}
		dropped = strings.TrimPrefix(u.Path, "/")
		conn := connect(t, inner)
		// What the store's bootstrap leaves: two roles with rights, and a connection still open at the end.
		for _, sql := range []string{
			`CREATE ROLE ` + dropped + `_app`, `CREATE ROLE ` + dropped + `_engine`,
			`GRANT ` + dropped + `_app, ` + dropped + `_engine TO CURRENT_USER`,
			`CREATE TABLE only_here (id int)`, `GRANT ALL ON only_here TO ` + dropped + `_app`,
			`SET ROLE ` + dropped + `_app`, `SELECT * FROM only_here`,
		} {
			if _, err := conn.Exec(ctx, sql); err != nil {
				t.Fatalf("%s: %v", sql, err)
			}
		}
	})
	var tables, databases, roles int
	if err := connect(t, outer).QueryRow(ctx, `SELECT (SELECT count(*) FROM pg_class WHERE relname = 'only_here'),
		(SELECT count(*) FROM pg_database WHERE datname = $1), (SELECT count(*) FROM pg_roles WHERE rolname LIKE $1 || '\_%')`,
		dropped).Scan(&tables, &databases, &roles); err != nil {
		t.Fatal(err)
	}
	if tables+databases+roles != 0 {
		t.Errorf("seen from another database: %d tables; left: %d databases, %d roles", tables, databases, roles)
	}
}

func TestAdminMayEndBackends(t *testing.T) {
	ctx, dsn := context.Background(), pgtest.New(t)
	victim := connect(t, dsn)
	var ended bool
	if err := connect(t, pgtest.Admin(t, dsn)).QueryRow(ctx, `SELECT pg_terminate_backend(pid, 60000) FROM pg_stat_activity
		WHERE datname = current_database() AND pid = $1`, victim.PgConn().PID()).Scan(&ended); err != nil {
		t.Fatal(err)
	}
	if err := victim.Ping(ctx); !ended || err == nil {
		t.Errorf("ended %v, the victim's ping: %v", ended, err)
	}
}

func BenchmarkNew(b *testing.B) {
	var took time.Duration
	for b.Loop() {
		began := time.Now()
		pgtest.New(b)
		took += time.Since(began)
	}
}
