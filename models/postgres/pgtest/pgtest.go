package pgtest

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

const patience = time.Minute

// New makes a database for one test and returns the DSN of its login. It is dropped, with its roles, when the test ends.
func New(t testing.TB) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	a, err := admin()
	if err != nil {
		t.Fatal(err)
	}
	name := "test_" + strings.ToLower(rand.Text()[:12])
	login, password := name+"_login", rand.Text()
	for _, sql := range []string{
		fmt.Sprintf(`CREATE ROLE %s LOGIN CREATEROLE NOSUPERUSER NOBYPASSRLS PASSWORD '%s'`, login, password),
		fmt.Sprintf(`GRANT %s TO CURRENT_USER`, login), // a maker that is no superuser needs it to give the database away
		fmt.Sprintf(`CREATE DATABASE %s OWNER %s%s`, name, login, a.strategy),
	} {
		if _, err := a.pool.Exec(ctx, sql); err != nil {
			t.Fatalf("making the test's database: %s: %v", strings.ReplaceAll(sql, password, "…"), err)
		}
	}
	t.Cleanup(func() { drop(t, a, name) })
	return a.dsn(name, url.UserPassword(login, password))
}

// Admin is the DSN of the cluster's administrator on the same database as dsn: to end backends, to read what others do.
func Admin(t testing.TB, dsn string) string {
	t.Helper()
	a, err := admin()
	if err != nil {
		t.Fatal(err)
	}
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	return a.dsn(strings.TrimPrefix(u.Path, "/"), a.url.User)
}

func drop(t testing.TB, a *cluster, name string) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for _, sql := range []string{
		fmt.Sprintf(`DROP DATABASE IF EXISTS %s WITH (FORCE)`, name),
		fmt.Sprintf(`DROP ROLE IF EXISTS %s_app, %s_engine`, name, name),
		fmt.Sprintf(`DROP ROLE IF EXISTS %s_login`, name),
	} {
		if _, err := a.pool.Exec(ctx, sql); err != nil {
			t.Errorf("dropping the test's database: %s: %v", sql, err)
		}
	}
}

// cluster is where databases are made, by whom.
type cluster struct {
	url      *url.URL
	pool     *pgxpool.Pool // two connections; it lives as long as the test process
	strategy string        // how a database is copied
}

var admin = sync.OnceValues(func() (*cluster, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	dsn, err := adminDSN(ctx)
	if err != nil {
		return nil, fmt.Errorf("no PostgreSQL for tests: %w", err)
	}
	u, err := url.Parse(dsn)
	if err != nil || u.Scheme == "" {
		return nil, fmt.Errorf("TEST_DATABASE_URL must be a URL, postgres://user:password@host/database")
	}
	config, err := pgxpool.ParseConfig(dsn)
	if err != nil {
		return nil, err
	}
	config.MaxConns = 2
	config.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeSimpleProtocol
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, err
	}
	c := &cluster{url: u, pool: pool}
	var copies bool
	if err := pool.QueryRow(ctx, `SELECT current_setting('server_version_num')::int >= 150000`).Scan(&copies); err != nil {
		return nil, fmt.Errorf("no PostgreSQL for tests: %w", err)
	}
	if copies { // 45 ms where the default of these versions takes 130; older ones know nothing else
		c.strategy = " STRATEGY FILE_COPY"
	}
	return c, nil
})

func (c *cluster) dsn(database string, who *url.Userinfo) string {
	u := *c.url
	u.Path, u.User = "/"+database, who
	return u.String()
}
