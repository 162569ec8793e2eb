package pgtest

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"nightshift/models/postgres"
)

const (
	patience = 3 * time.Minute  // a statement, on a machine whose disk is slow
	start    = 10 * time.Minute // a cluster, or the database that others are copied from: whoever comes later waits for who came first
)

// New makes a database for one test and returns the DSN of its login. It is dropped, with its roles, when the test ends.
func New(t testing.TB) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	a, err := admin()
	if err != nil {
		t.Fatal(err)
	}
	name := newName()
	dsn, err := a.create(ctx, name, "template1")
	t.Cleanup(func() { drop(t, a, name) })
	if err != nil {
		t.Fatalf("making the test's database: %v", err)
	}
	return dsn
}

func newName() string { return "test_" + strings.ToLower(rand.Text()[:12]) }

// create makes a login and its database, as a copy of another, and returns the login's DSN.
func (c *cluster) create(ctx context.Context, name, from string) (string, error) {
	login, password := name+"_login", rand.Text()
	for _, sql := range []string{
		fmt.Sprintf(`CREATE ROLE %s LOGIN CREATEROLE NOSUPERUSER NOBYPASSRLS PASSWORD '%s'`, login, password),
		fmt.Sprintf(`GRANT %s TO CURRENT_USER`, login), // a maker that is no superuser needs it to give the database away
		fmt.Sprintf(`CREATE DATABASE %s OWNER %s TEMPLATE %s%s`, name, login, from, c.strategy),
	} {
		if _, err := c.pool.Exec(ctx, sql); err != nil {
			return "", fmt.Errorf("%s: %w", strings.ReplaceAll(sql, password, "…"), err)
		}
	}
	return c.dsn(name, url.UserPassword(login, password)), nil
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
	for _, sql := range dropping(name) {
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
	private  bool          // it is the tests' own, and ends after them
}

var admin = sync.OnceValues(func() (*cluster, error) {
	ctx, cancel := context.WithTimeout(context.Background(), start)
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
	postgres.Queued(&config.ConnConfig.Config)
	config.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeSimpleProtocol
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, err
	}
	c := &cluster{url: u, pool: pool, private: os.Getenv("TEST_DATABASE_URL") == ""}
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
