package local_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"nightshift/models/postgres/local"
)

const ownerOf = "LOCAL_TEST_OWNER_OF"

// TestMain turns the test binary into an owner of a database that can be killed.
func TestMain(m *testing.M) {
	if root := os.Getenv(ownerOf); root != "" {
		s, err := local.Start(context.Background(), local.Options{Root: root})
		if err != nil {
			fmt.Println("failed", err)
			os.Exit(1)
		}
		fmt.Println("pid", s.PID())
		<-s.Done()
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// openDir is a temporary folder that the account of the server may enter: t.TempDir alone is closed to others.
func openDir(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.Chmod(filepath.Dir(dir), 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

func start(t *testing.T, root string) *local.Server {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	s, err := local.Start(ctx, local.Options{Root: root})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func stop(t *testing.T, s *local.Server) {
	t.Helper()
	if err := s.Stop(); err != nil {
		t.Fatal(err)
	}
}

func connect(t *testing.T, dsn string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(context.Background(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

func exec1(t *testing.T, dsn, sql string) {
	t.Helper()
	conn := connect(t, dsn)
	defer conn.Close(context.Background())
	if _, err := conn.Exec(context.Background(), sql); err != nil {
		t.Fatal(err)
	}
}

func query[T any](t *testing.T, dsn, sql string, args ...any) T {
	t.Helper()
	conn := connect(t, dsn)
	defer conn.Close(context.Background())
	var out T
	if err := conn.QueryRow(context.Background(), sql, args...).Scan(&out); err != nil {
		t.Fatal(err)
	}
	return out
}

func TestSecondStartKeepsTheData(t *testing.T) {
	root := filepath.Join(openDir(t), "pg")
	s := start(t, root)
	exec1(t, s.DSN(), `CREATE TABLE kept (id int PRIMARY KEY); INSERT INTO kept VALUES (7)`)
	first := s.DSN()
	stop(t, s)

	began := time.Now()
	s = start(t, root)
	t.Logf("second start took %v", time.Since(began).Round(time.Millisecond))
	defer stop(t, s)
	if s.DSN() != first {
		t.Error("the login's DSN changed between two starts")
	}
	if got := query[int](t, s.DSN(), `SELECT id FROM kept`); got != 7 {
		t.Errorf("kept row: %d", got)
	}
}

func TestLoginIsBoundByRowSecurity(t *testing.T) {
	s := start(t, filepath.Join(openDir(t), "pg"))
	defer stop(t, s)
	if query[bool](t, s.DSN(), `SELECT rolsuper OR rolbypassrls FROM pg_roles WHERE rolname = current_user`) {
		t.Error("the login is superuser or BYPASSRLS")
	}
	if !query[bool](t, s.AdminDSN(), `SELECT rolsuper FROM pg_roles WHERE rolname = current_user`) {
		t.Error("the admin is no superuser")
	}
	if owner := query[string](t, s.DSN(), `SELECT pg_get_userbyid(datdba) FROM pg_database WHERE datname = current_database()`); owner != local.Login {
		t.Errorf("the database belongs to %s", owner)
	}
	// What a migration does as the login: a role, membership in it, a schema of its own tables, and a change of role.
	exec1(t, s.DSN(), `CREATE ROLE nightshift_app; GRANT nightshift_app TO nightshift_login;
		CREATE TABLE walled (id int); ALTER TABLE walled ENABLE ROW LEVEL SECURITY; GRANT SELECT ON walled TO nightshift_app;
		SET ROLE nightshift_app; SELECT * FROM walled`)
	for name, want := range map[string]string{"max_connections": "200", "shared_buffers": "256MB", "fsync": "on", "server_encoding": "UTF8", "data_checksums": "on", "listen_addresses": ""} {
		if got := query[string](t, s.DSN(), `SELECT current_setting($1)`, name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
}

func TestSecretsAreForTheOwnerAlone(t *testing.T) {
	root := filepath.Join(openDir(t), "pg")
	s := start(t, root)
	defer stop(t, s)
	for _, name := range []string{"password", "login.password", "postgres.log", "lock"} {
		info, err := os.Stat(filepath.Join(root, name))
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has mode %v", name, info.Mode())
		}
	}
}

func TestServerKilled(t *testing.T) {
	root := filepath.Join(openDir(t), "pg")
	s := start(t, root)
	exec1(t, s.DSN(), `CREATE TABLE kept (id int PRIMARY KEY); INSERT INTO kept VALUES (7)`)
	if err := syscall.Kill(s.PID(), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	<-s.Done()
	if err := s.Stop(); err == nil {
		t.Error("a killed server stopped without an error")
	}
	s = start(t, root)
	defer stop(t, s)
	if got := query[int](t, s.DSN(), `SELECT id FROM kept`); got != 7 {
		t.Errorf("kept row: %d", got)
	}
}

func TestOwnerKilled(t *testing.T) {
	root := filepath.Join(openDir(t), "pg")
	owner := exec.Command(os.Args[0])
	owner.Env = append(os.Environ(), ownerOf+"="+root)
	out, err := owner.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := owner.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(strings.TrimPrefix(line, "pid ")))
	if err != nil {
		t.Fatalf("owner said %q", line)
	}

	_, err = local.Start(context.Background(), local.Options{Root: root})
	if !errors.Is(err, local.ErrInUse) || !strings.Contains(err.Error(), strconv.Itoa(owner.Process.Pid)) {
		t.Errorf("second owner of a living one's folder: %v", err)
	}
	if err := owner.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = owner.Wait() // killed, as meant
	s := start(t, root)
	defer stop(t, s)
	if s.PID() == pid {
		t.Error("the new server has the old one's process")
	}
	if got := query[int](t, s.DSN(), `SELECT 1`); got != 1 {
		t.Error(got)
	}
}

func TestFolderErrors(t *testing.T) {
	foreign := filepath.Join(openDir(t), "pg")
	if err := os.MkdirAll(filepath.Join(foreign, "data"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(foreign, "data", "letter.txt"), []byte("mine"), 0o644); err != nil {
		t.Fatal(err)
	}
	newer := filepath.Join(openDir(t), "pg")
	if err := os.MkdirAll(filepath.Join(newer, "data"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(newer, "data", "PG_VERSION"), []byte("99\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		o    local.Options
		want string
	}{
		"socket path too long": {local.Options{Root: filepath.Join(openDir(t), strings.Repeat("long", 25))}, "choose a shorter data folder"},
		"foreign files":        {local.Options{Root: foreign}, "not one to overwrite"},
		"other version":        {local.Options{Root: newer, Mirror: "off"}, "needs version 99"},
		"no binaries there":    {local.Options{Root: filepath.Join(openDir(t), "pg"), Bin: t.TempDir()}, "NIGHTSHIFT_PG_BIN"},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := local.Start(context.Background(), c.o)
			if err == nil {
				_ = s.Stop()
				t.Fatal("it started")
			}
			if !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %q does not say %q", err, c.want)
			}
		})
	}
	if text, err := os.ReadFile(filepath.Join(foreign, "data", "letter.txt")); err != nil || string(text) != "mine" {
		t.Errorf("the foreign file: %q, %v", text, err)
	}
}

func TestClosedParentFolder(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root gives the server to another account")
	}
	closed := filepath.Join(openDir(t), "closed")
	if err := os.Mkdir(closed, 0o700); err != nil {
		t.Fatal(err)
	}
	_, err := local.Start(context.Background(), local.Options{Root: filepath.Join(closed, "pg")})
	if err == nil || !strings.Contains(err.Error(), "closed to user") {
		t.Errorf("a folder below a closed one: %v", err)
	}
}
