package pgtest

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"nightshift/models/postgres"
)

// Opened is a migrated database for tests that change rows and nothing else: that of a test before it, emptied, with the
// connections of its pool. To make a database with its roles and rights, to connect and to drop it again costs more than most
// tests do. A process that ends leaves its databases to the next.
func Opened(t testing.TB) *postgres.DB {
	t.Helper()
	a, err := admin()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	options := postgres.Options{PoolSize: 8, ConnectTimeout: patience, BatchTimeout: patience}
	if a.private {
		options.URL, options.Pool = shelf.emptied(t, ctx, a)
	} else {
		options.URL = New(t)
	}
	db, err := postgres.Open(ctx, options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	if a.private {
		return db
	}
	if err := db.Migrate(ctx); err != nil {
		t.Fatal(err)
	}
	return db
}

// emptied lends a test a database until it ends.
func (s *spares) emptied(t testing.TB, ctx context.Context, a *cluster) (string, *pgxpool.Pool) {
	t.Helper()
	one, err := s.take(ctx, a)
	if err == nil {
		err = one.empty(ctx)
	}
	if err != nil {
		t.Fatalf("emptying a database for the test: %v", err)
	}
	t.Cleanup(func() { s.put(one) })
	return one.dsn, one.pool
}

// spare is a database that no test uses at the moment.
type spare struct {
	dsn   string
	pool  *pgxpool.Pool
	admin *pgx.Conn // of the administrator, to it
}

// spares are those that this process has taken: nobody else does for as long as its session holds their locks.
type spares struct {
	mu   sync.Mutex
	lock *pgx.Conn
	free []*spare
}

var shelf spares

func (s *spares) put(one *spare) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.free = append(s.free, one)
}

// take gives one that is free, or that an ended process left, or a new one.
func (s *spares) take(ctx context.Context, a *cluster) (*spare, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := len(s.free); n > 0 {
		one := s.free[n-1]
		s.free = s.free[:n-1]
		return one, nil
	}
	model, err := template()
	if err != nil {
		return nil, err
	}
	if s.lock == nil {
		if s.lock, err = connectTo(ctx, a.dsn("postgres", a.url.User)); err != nil {
			return nil, err
		}
	}
	prefix := strings.Replace(model, "template_", "spare_", 1) + "_"
	one, err := s.adopt(ctx, a, prefix)
	if one != nil || err != nil {
		return one, err
	}
	return s.make(ctx, a, prefix+strings.ToLower(rand.Text()[:12]), model)
}

// adopt takes a database that an ended process left. One that was never finished is dropped.
func (s *spares) adopt(ctx context.Context, a *cluster, prefix string) (*spare, error) {
	for {
		var name string
		err := s.lock.QueryRow(ctx, `SELECT coalesce((SELECT datname FROM (SELECT datname FROM pg_database WHERE starts_with(datname, '`+prefix+`') AND
			NOT EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory' AND objid = hashtext(datname)::oid) ORDER BY datname OFFSET 0) d
			WHERE pg_try_advisory_lock(0, hashtext(datname)) LIMIT 1), '')`).Scan(&name)
		if err != nil || name == "" {
			return nil, err
		}
		one, err := s.reach(ctx, a, name)
		if one != nil || err != nil {
			return one, err
		}
		for _, sql := range dropping(name) {
			if _, err := s.lock.Exec(ctx, sql); err != nil {
				return nil, err
			}
		}
	}
}

// reach connects to a spare and gives its login a new password. It answers nothing where the making of it was never finished.
func (s *spares) reach(ctx context.Context, a *cluster, name string) (*spare, error) {
	conn, err := connectTo(ctx, a.dsn(name, a.url.User))
	if err != nil {
		return nil, err
	}
	var whole bool
	if err := conn.QueryRow(ctx, `SELECT to_regnamespace('as_migrated') IS NOT NULL`).Scan(&whole); err != nil || !whole {
		_ = conn.Close(ctx)
		return nil, err
	}
	login, password := name+"_login", rand.Text()
	if _, err := conn.Exec(ctx, fmt.Sprintf(`ALTER ROLE %s PASSWORD '%s'`, login, password)); err != nil {
		return nil, err
	}
	return newSpare(ctx, a.dsn(name, url.UserPassword(login, password)), conn)
}

// pooled is how the connections of a spare's pool call themselves: they outlive the test.
const pooled = "pgtest"

func newSpare(ctx context.Context, dsn string, admin *pgx.Conn) (*spare, error) {
	u, err := url.Parse(dsn)
	if err != nil {
		return nil, err
	}
	query := u.Query()
	query.Set("application_name", pooled)
	u.RawQuery = query.Encode()
	pool, err := postgres.NewPool(ctx, postgres.Options{URL: u.String(), PoolSize: 8, ConnectTimeout: patience})
	return &spare{dsn, pool, admin}, err
}

// make copies the template and notes which rows it came with.
func (s *spares) make(ctx context.Context, a *cluster, name, model string) (*spare, error) {
	if _, err := s.lock.Exec(ctx, `SELECT pg_advisory_lock(0, hashtext('`+name+`'))`); err != nil {
		return nil, err
	}
	dsn, err := a.create(ctx, name, model)
	if err == nil {
		err = a.own(ctx, name, model)
	}
	if err != nil {
		return nil, err
	}
	conn, err := connectTo(ctx, a.dsn(name, a.url.User))
	if err != nil {
		return nil, err
	}
	if _, err = conn.Exec(ctx, noting); err != nil {
		return nil, err
	}
	return newSpare(ctx, dsn, conn)
}

func connectTo(ctx context.Context, dsn string) (*pgx.Conn, error) {
	config, err := pgx.ParseConfig(dsn)
	if err != nil {
		return nil, err
	}
	postgres.Queued(&config.Config)
	config.DefaultQueryExecMode = pgx.QueryExecModeSimpleProtocol
	return pgx.ConnectConfig(ctx, config)
}

// tables are those that tests write to.
const tables = `SELECT oid, relname AS name FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace AND relname <> 'goose_db_version'`

// noting keeps the rows that a migrated database has.
const noting = `
DO $$
DECLARE
    x      record;
    filled boolean;
BEGIN
    CREATE SCHEMA as_migrated;
    FOR x IN ` + tables + ` LOOP
        EXECUTE format('SELECT EXISTS (SELECT FROM public.%I)', x.name) INTO filled;
        IF filled THEN
            EXECUTE format('CREATE TABLE as_migrated.%1$I AS TABLE public.%1$I', x.name);
        END IF;
    END LOOP;
END $$`

// emptying makes the rows those that a migrated database has. Whoever is still connected, but for the pool, belongs to a test that
// has ended.
const emptying = `
DO $$
DECLARE
    x      record;
    filled text;
BEGIN
    PERFORM pg_terminate_backend(pid, 60000) FROM pg_stat_activity
    WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend' AND
        (application_name <> '` + pooled + `' OR state <> 'idle');
    SELECT string_agg(quote_ident(name), ', ') INTO filled FROM (` + tables + ` AND pg_relation_size(oid) > 0) t;
    IF filled <> '' THEN
        EXECUTE 'TRUNCATE ' || filled || ' CASCADE';
    END IF;
    PERFORM setval(seqrelid, seqstart, false) FROM pg_sequence WHERE seqrelid <> 'goose_db_version_id_seq'::regclass;
    PERFORM set_config('session_replication_role', 'replica', true); -- in whatever order
    FOR x IN SELECT relname AS name FROM pg_class WHERE relkind = 'r' AND relnamespace = 'as_migrated'::regnamespace LOOP
        EXECUTE format('INSERT INTO public.%1$I OVERRIDING SYSTEM VALUE TABLE as_migrated.%1$I', x.name);
    END LOOP;
END $$`

func (s *spare) empty(ctx context.Context) error {
	_, err := s.admin.Exec(ctx, emptying)
	return err
}
