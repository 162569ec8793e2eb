package chaos

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"nightshift/models/postgres/local"
)

// cluster is the run's PostgreSQL. It writes what it commits, as in earnest.
type cluster struct {
	server *local.Server
	root   string
}

var theCluster = sync.OnceValues(func() (*cluster, error) {
	c := &cluster{root: filepath.Join(scratch(), "postgres")}
	return c, c.start()
})

// start waits for long: after a crash all that was written is read again, and where disks are slow that takes minutes.
func (c *cluster) start() error {
	ctx, cancel := context.WithTimeout(context.Background(), 5*patience)
	defer cancel()
	server, err := local.Start(ctx, local.Options{Root: c.root, Settings: map[string]string{
		"fsync": "on", "synchronous_commit": "on", "full_page_writes": "on", "shared_buffers": "64MB",
	}})
	if err == nil {
		c.server = server
	}
	return err
}

// crash ends the postmaster as the kernel would, and starts it again on what is left.
func (c *cluster) crash() error {
	if err := syscall.Kill(c.server.PID(), syscall.SIGKILL); err != nil {
		return err
	}
	select {
	case <-c.server.Done():
	case <-time.After(patience):
		return errors.New("the killed database lives on")
	}
	_ = c.server.Stop() // it has ended: this lets go of the folder
	return c.start()
}

func (c *cluster) socket() string { return filepath.Join(c.root, "run", ".s.PGSQL.5432") }

// Database is one world's own, in the run's cluster.
type Database struct {
	cluster *cluster
	name    string
	login   *url.Userinfo
	Admin   *pgxpool.Pool // the administrator's: row level security does not apply
}

const patience = time.Minute

func newDatabase(t testing.TB) *Database {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	c, err := theCluster()
	if err != nil {
		t.Fatal(err)
	}
	name := "chaos_" + strings.ToLower(rand.Text()[:10])
	password := rand.Text()
	d := &Database{cluster: c, name: name, login: url.UserPassword(name+"_login", password)}
	conn, err := pgx.Connect(ctx, c.server.AdminDSN())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	for _, sql := range []string{
		fmt.Sprintf(`CREATE ROLE %s_login LOGIN CREATEROLE NOSUPERUSER NOBYPASSRLS PASSWORD '%s'`, name, password),
		fmt.Sprintf(`CREATE DATABASE %s OWNER %s_login`, name, name),
	} {
		if _, err := conn.Exec(ctx, sql); err != nil {
			t.Fatal(err)
		}
	}
	admin, err := url.Parse(c.server.AdminDSN())
	if err != nil {
		t.Fatal(err)
	}
	admin.Path = "/" + name
	query := admin.Query()
	query.Set("pool_max_conns", "4")
	admin.RawQuery = query.Encode()
	if d.Admin, err = pgxpool.New(ctx, admin.String()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.Admin.Close)
	return d
}

// through is the login's address over a proxy.
func (d *Database) through(l *Link) string {
	u := url.URL{Scheme: "postgres", User: d.login, Host: l.Address(), Path: "/" + d.name, RawQuery: "sslmode=disable"}
	return u.String()
}

// link is a proxy in front of the database.
func (d *Database) link(t testing.TB) *Link {
	return newLink(t, func() (net.Conn, error) { return net.DialTimeout("unix", d.cluster.socket(), 5*time.Second) })
}

// scan reads one row of the database, and keeps trying while the database is away.
func (d *Database) scan(t testing.TB, sql string, args []any, into ...any) {
	t.Helper()
	var err error
	for until := time.Now().Add(patience); time.Now().Before(until); time.Sleep(100 * time.Millisecond) {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		err = d.Admin.QueryRow(ctx, sql, args...).Scan(into...)
		cancel()
		if err == nil {
			return
		}
	}
	t.Fatalf("%s: %v", sql, err)
}

// count is scan of one number.
func (d *Database) count(t testing.TB, sql string, args ...any) int {
	t.Helper()
	var n int
	d.scan(t, sql, args, &n)
	return n
}

// endBackends ends sessions of the login, as an administrator or a failing server would.
func (d *Database) endBackends(t testing.TB, where string) int {
	t.Helper()
	return d.count(t, `SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE datname = current_database() AND usename = $1 AND `+where,
		d.login.Username())
}
