package local

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	// Superuser, Login and Database are the names inside the cluster.
	Superuser = "postgres"
	Login     = "nightshift_login"
	Database  = "nightshift"

	port          = "5432"
	mostSocket    = 103             // sun_path holds 108 bytes on Linux, 104 elsewhere, with the closing NUL
	startPatience = 5 * time.Minute // after a crash all that was written since the last checkpoint is read again
	stopPatience  = 30 * time.Second
)

// Options say where the database lives and what it runs on.
type Options struct {
	Root     string            // the folder; made when missing
	Bin      string            // folder of initdb and postgres; empty: looked for
	Mirror   string            // where binaries are downloaded from; empty: the public npm registry, "off": nowhere
	Settings map[string]string // server settings over the defaults
	Logger   *slog.Logger
}

// Server is a running PostgreSQL. It ends with the process that started it.
type Server struct {
	root    folder
	process *exec.Cmd
	done    chan struct{}
	exit    error // set before done closes
	lock    *os.File
}

// Start runs the database of a folder and returns once it answers. The context bounds the start alone.
func Start(ctx context.Context, o Options) (*Server, error) {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	root, err := openFolder(o.Root)
	if err != nil {
		return nil, err
	}
	lock, err := root.lock()
	if err != nil {
		return nil, err
	}
	s := &Server{root: root, lock: lock, done: make(chan struct{})}
	if err := s.start(ctx, o); err != nil {
		if s.process != nil && s.process.Process != nil {
			_ = s.Stop()
		}
		_ = lock.Close()
		return nil, err
	}
	return s, nil
}

func (s *Server) start(ctx context.Context, o Options) error {
	began := time.Now()
	version, err := s.root.version()
	if err != nil {
		return err
	}
	bin, err := findBinaries(ctx, o, s.root, version)
	if err != nil {
		return err
	}
	if version == "" {
		o.Logger.Info("making a new database", "folder", s.root.path, "binaries", bin)
		if err := s.root.initialise(ctx, bin); err != nil {
			return err
		}
	}
	if err := s.root.reap(ctx); err != nil {
		return err
	}
	if err := s.launch(bin, o.Settings); err != nil {
		return err
	}
	if err := s.await(ctx); err != nil {
		return err
	}
	if err := s.bootstrap(ctx); err != nil {
		return fmt.Errorf("preparing the database in %s: %w", s.root.path, err)
	}
	o.Logger.Info("database started", "folder", s.root.path, "pid", s.PID(), "took", time.Since(began).Round(time.Millisecond))
	return nil
}

// settings are the server's: modest, durable, and quiet about what the application handles itself.
func settings(run string, over map[string]string) []string {
	all := map[string]string{
		"listen_addresses":        "",
		"unix_socket_directories": run,
		"unix_socket_permissions": "0700",
		"port":                    port,
		"max_connections":         "200",
		"shared_buffers":          "256MB",
		"max_wal_size":            "2GB",
		"wal_compression":         "on",
		"jit":                     "off",
		"timezone":                "UTC",
		"log_timezone":            "UTC",
	}
	for name, value := range over {
		all[name] = value
	}
	var args []string
	for name, value := range all {
		args = append(args, "--"+name+"="+value)
	}
	slices.Sort(args)
	return args
}

func (s *Server) launch(bin string, over map[string]string) error {
	log, err := s.root.openLog()
	if err != nil {
		return err
	}
	defer log.Close() // the server has its own descriptor
	args := append([]string{"-D", s.root.data()}, settings(s.root.run(), over)...)
	s.process = s.root.command(bin, "postgres", args...)
	s.process.Stdout, s.process.Stderr = log, log

	started := make(chan error)
	go func() {
		// The kernel's death signal is tied to the thread that started the child: keep that thread alive.
		runtime.LockOSThread()
		err := s.process.Start()
		started <- err
		if err != nil {
			return
		}
		s.exit = s.process.Wait()
		close(s.done)
	}()
	if err := <-started; err != nil {
		return fmt.Errorf("starting %s: %w", s.process.Path, err)
	}
	return nil
}

// await returns once the server takes connections, or says why it never will.
func (s *Server) await(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startPatience)
	defer cancel()
	for {
		conn, err := pgx.Connect(ctx, s.dsn(Superuser, "password", "postgres"))
		if err == nil {
			return conn.Close(ctx)
		}
		select {
		case <-s.done:
			return fmt.Errorf("PostgreSQL ended at its start (%w); the end of %s:\n%s", s.exit, s.root.logPath(), s.root.logTail())
		case <-ctx.Done():
			return fmt.Errorf("PostgreSQL in %s does not answer: %w", s.root.path, errors.Join(ctx.Err(), err))
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// DSN is the login's, on the application's database.
func (s *Server) DSN() string { return s.dsn(Login, "login.password", Database) }

// AdminDSN is the superuser's, on the application's database.
func (s *Server) AdminDSN() string { return s.dsn(Superuser, "password", Database) }

func (s *Server) dsn(user, passwordFile, database string) string {
	password, _ := os.ReadFile(filepath.Join(s.root.path, passwordFile)) // missing: the server refuses, which says enough
	query := url.Values{"host": {s.root.run()}, "port": {port}, "sslmode": {"disable"}}
	u := url.URL{
		Scheme: "postgres", User: url.UserPassword(user, strings.TrimSpace(string(password))),
		Path: "/" + database, RawQuery: query.Encode(),
	}
	return u.String()
}

// PID is the server's process.
func (s *Server) PID() int { return s.process.Process.Pid }

// Done is closed when the server has ended, asked or not.
func (s *Server) Done() <-chan struct{} { return s.done }

// Stop ends the server: open transactions are rolled back, what was committed is on disk.
func (s *Server) Stop() error { return s.end(syscall.SIGINT) }

// Abandon ends the server as a crash would, for data that nobody will read again.
func (s *Server) Abandon() error { return s.end(syscall.SIGQUIT) }

func (s *Server) end(with syscall.Signal) error {
	defer s.lock.Close()
	_ = s.process.Process.Signal(with) // refused: it has ended, and done says so
	patience := time.NewTimer(stopPatience)
	defer patience.Stop()
	select {
	case <-s.done:
	case <-patience.C:
		_ = s.process.Process.Signal(syscall.SIGQUIT)
		<-s.done
	}
	var status *exec.ExitError
	if errors.As(s.exit, &status) {
		return fmt.Errorf("PostgreSQL in %s: %w", s.root.path, s.exit)
	}
	return nil
}
