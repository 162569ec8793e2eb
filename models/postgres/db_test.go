package postgres_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"gorm.io/gorm"

	"nightshift/models/postgres"
	"nightshift/models/postgres/pgtest"
)

// patience is what a test waits for anything that must come, however slow the machine.
const patience = time.Minute

// open gives a migrated database of the test's own, whose connections and batches may take their time.
func open(t testing.TB) (*postgres.DB, string) {
	t.Helper()
	return openWithin(t, patience)
}

// openWithin is open with another time for a batch.
func openWithin(t testing.TB, batch time.Duration) (*postgres.DB, string) {
	t.Helper()
	dsn := pgtest.Migrated(t)
	db, err := postgres.Open(t.Context(), postgres.Options{URL: dsn, ConnectTimeout: patience, BatchTimeout: batch})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	if err := db.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	return db, dsn
}

// exec runs a statement as the role that sees all, for as long as it takes: what a test puts there is put there slowly by some
// machines.
func exec(t testing.TB, db *postgres.DB, sql string, args ...any) {
	t.Helper()
	err := db.Platform().Write(t.Context(), func(tx pgx.Tx) error {
		if _, err := tx.Exec(t.Context(), `SET LOCAL statement_timeout = '10min'`); err != nil {
			return err
		}
		_, err := tx.Exec(t.Context(), sql, args...)
		return err
	})
	if err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

// one reads one value as the role that sees all.
func one[T any](t testing.TB, db *postgres.DB, sql string, args ...any) (v T) {
	t.Helper()
	err := db.Platform().Read(t.Context(), func(tx pgx.Tx) error { return tx.QueryRow(t.Context(), sql, args...).Scan(&v) })
	if err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return v
}

func TestReplicasMigrateTogether(t *testing.T) {
	dsn := pgtest.New(t)
	var all sync.WaitGroup
	for range 3 {
		all.Go(func() {
			db, err := postgres.Open(t.Context(), postgres.Options{URL: dsn})
			if err != nil {
				t.Error(err)
				return
			}
			defer db.Close()
			if err := db.Migrate(t.Context()); err != nil {
				t.Error(err)
			}
			if ok, err := db.Migrated(t.Context()); err != nil || !ok {
				t.Errorf("migrated: %v, %v", ok, err)
			}
		})
	}
	all.Wait()
}

func TestScopeShowsItsOwnRowsAlone(t *testing.T) {
	db, dsn := open(t)
	for tenant := 1; tenant <= 2; tenant++ {
		exec(t, db, `INSERT INTO environments VALUES ($1, gen_random_uuid(), $1, 'production', 'production', false, '', 0, 0, 1)`, tenant)
		exec(t, db, `INSERT INTO specs (env, id, input) VALUES ($1, gen_random_uuid(), '{}')`, tenant)
		exec(t, db, `INSERT INTO api_keys (id, tenant, name, secret_sha256, scopes, created_at, updated_at)
			VALUES ('key' || $1::int, $1, '', sha256('x'), '{}', now(), now())`, tenant)
	}
	count := func(read func(tx pgx.Tx) error, scope *postgres.Scoped) {
		t.Helper()
		if err := scope.Read(t.Context(), read); err != nil {
			t.Fatal(err)
		}
	}
	for _, table := range []string{"environments", "specs", "api_keys"} {
		for want, scope := range map[int]*postgres.Scoped{
			0: db.For(postgres.Scope{Tenant: 7, Envs: []int32{7}}),
			1: db.For(postgres.Scope{Tenant: 2, Envs: []int32{2}}),
			2: db.Platform(),
		} {
			count(func(tx pgx.Tx) error {
				var n int
				if err := tx.QueryRow(t.Context(), `SELECT count(*) FROM `+table).Scan(&n); err != nil || n != want {
					t.Errorf("%s: saw %d rows, not %d: %v", table, n, want, err)
				}
				return nil
			}, scope)
		}
	}
	// A statement that forgot its role sees nothing, though the login owns the tables.
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	var n int
	if err := conn.QueryRow(t.Context(), `SELECT count(*) FROM specs`).Scan(&n); err != nil || n != 0 {
		t.Errorf("the login itself saw %d rows: %v", n, err)
	}
	if _, err := conn.Exec(t.Context(), `INSERT INTO specs (env, id, input) VALUES (1, gen_random_uuid(), '{}')`); err == nil {
		t.Error("the login itself may write")
	}
}

func TestScopeMayNotWriteOthersKeys(t *testing.T) {
	db, _ := open(t)
	insert := `INSERT INTO api_keys (id, tenant, name, secret_sha256, scopes, created_at, updated_at)
		VALUES ('k', ?, '', sha256('x'), '{}', now(), now())`
	mine := db.For(postgres.Scope{Tenant: 1})
	if err := mine.Gorm(t.Context(), func(tx *gorm.DB) error { return tx.Exec(insert, 2).Error }); err == nil {
		t.Error("a key of another tenant was written")
	}
	if err := mine.Gorm(t.Context(), func(tx *gorm.DB) error { return tx.Exec(insert, 1).Error }); err != nil {
		t.Error(err)
	}
	if n := one[int](t, db, `SELECT count(*) FROM api_keys WHERE tenant = 1`); n != 1 {
		t.Errorf("%d keys", n)
	}
}

func TestUnboundLoginIsRefused(t *testing.T) {
	admin := pgtest.Admin(t, pgtest.New(t))
	if _, err := postgres.Open(t.Context(), postgres.Options{URL: admin}); !errors.Is(err, postgres.ErrUnboundLogin) {
		t.Errorf("a superuser was let in: %v", err)
	}
}

// A pool whose sessions have all been ended, as by a failover, is not heard of: what had not begun is done on a new one.
func TestEndedSessionsAreNotHeardOf(t *testing.T) {
	db, dsn := open(t)
	admin, err := pgx.Connect(t.Context(), pgtest.Admin(t, dsn))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = admin.Close(context.Background()) }()
	people := postgres.NewPeople(db, nil)
	each := map[string]func() error{
		"read":  func() error { return db.Platform().Read(t.Context(), func(pgx.Tx) error { return nil }) },
		"write": func() error { return db.Platform().Write(t.Context(), func(pgx.Tx) error { return nil }) },
		"plain": func() error { _, err := people.APIKey(t.Context(), "x"); return err },
		"clock": func() error { _, err := people.Now(t.Context()); return err },
	}
	for name, do := range each {
		fillPool(t, db, 6)
		var ended int
		err := admin.QueryRow(t.Context(), `SELECT count(pg_terminate_backend(pid, 60000)) FROM pg_stat_activity
			WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'`).Scan(&ended)
		if err != nil || ended < 6 {
			t.Fatalf("ended %d sessions: %v", ended, err)
		}
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() {
				if err := do(); err != nil {
					t.Errorf("%s: %v", name, err)
				}
			})
		}
		all.Wait()
		db.MayRenew()
	}
}

// fillPool opens so many sessions of the pool at once.
func fillPool(t *testing.T, db *postgres.DB, sessions int) {
	t.Helper()
	var all sync.WaitGroup
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	open, shut := make(chan struct{}, sessions), make(chan struct{})
	for range sessions {
		all.Go(func() {
			err := db.Platform().Read(ctx, func(pgx.Tx) error { open <- struct{}{}; <-shut; return nil })
			if err != nil {
				t.Error(err)
				open <- struct{}{}
			}
		})
	}
	for range sessions {
		<-open
	}
	close(shut)
	all.Wait()
}
