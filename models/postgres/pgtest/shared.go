package pgtest

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"

	"nightshift/models/postgres/local"
)

const (
	// generation is part of the folder's name: processes of different settings don't share a cluster.
	generation = "2"
	keeperOf   = "PGTEST_KEEPER_OF"
	linger     = 20 * time.Second
	poll       = 20 * time.Millisecond
)

var quick = map[string]string{
	"fsync":              "off",
	"synchronous_commit": "off",
	"full_page_writes":   "off",
	"wal_level":          "minimal",
	"max_wal_senders":    "0",
	"max_connections":    "400",
	"autovacuum_naptime": "5s",
}

// The keeper is the test binary started once more, detached, as owner of the cluster. An init rather than a TestMain,
// so that every package that uses this one can start it.
func init() {
	if root := os.Getenv(keeperOf); root != "" {
		if err := keep(root); err != nil {
			_ = os.WriteFile(filepath.Join(root, "error"), []byte(err.Error()), 0o600)
			os.Exit(1)
		}
		os.Exit(0)
	}
}

// using is the lock on the cluster. It is kept here because a file nobody refers to is closed by the collector, and the
// cluster would end under a test.
//
//lint:ignore U1000 it is held, not read
var using *os.File

func adminDSN(ctx context.Context) (string, error) {
	if dsn := os.Getenv("TEST_DATABASE_URL"); dsn != "" {
		return dsn, nil
	}
	root := filepath.Join(os.TempDir(), fmt.Sprintf("nightshift-pgtest-%d-%s", os.Geteuid(), generation))
	if err := os.Mkdir(root, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", err
	}
	if err := owned(root); err != nil {
		return "", err
	}
	// Held, shared, for the life of this process: the keeper ends once nobody holds it. Where the keeper is just ending,
	// this waits until it has gone.
	var err error
	if using, err = flock(filepath.Join(root, "users"), syscall.LOCK_SH); err != nil {
		return "", err
	}
	starting, err := flock(filepath.Join(root, "starting"), syscall.LOCK_EX)
	if err != nil {
		return "", err
	}
	defer starting.Close()
	if dsn, ok := answers(ctx, root); ok {
		return dsn, nil
	}
	return startKeeper(ctx, root)
}

// owned refuses a folder that somebody else has put at the known name.
func owned(root string) error {
	info, err := os.Lstat(root)
	if err != nil {
		return err
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !info.IsDir() || !ok || int(stat.Uid) != os.Geteuid() {
		return fmt.Errorf("%s belongs to somebody else", root)
	}
	return nil
}

// flock waits for a lock that lasts until the file is closed or the process ends.
func flock(path string, how int) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	for {
		err = syscall.Flock(int(file.Fd()), how)
		if !errors.Is(err, syscall.EINTR) {
			break
		}
	}
	if err != nil {
		_ = file.Close()
		return nil, err
	}
	return file, nil
}

func answers(ctx context.Context, root string) (string, bool) {
	dsn, err := os.ReadFile(filepath.Join(root, "dsn"))
	if err != nil {
		return "", false
	}
	conn, err := pgx.Connect(ctx, string(dsn))
	if err != nil {
		return "", false
	}
	return string(dsn), conn.Close(ctx) == nil
}

func startKeeper(ctx context.Context, root string) (string, error) {
	for _, name := range []string{"dsn", "error"} {
		if err := os.Remove(filepath.Join(root, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
	}
	keeper := exec.Command(os.Args[0])
	keeper.Dir = root
	keeper.Env = append(os.Environ(), keeperOf+"="+root)
	keeper.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // no pipe and no terminal of ours: `go test` doesn't wait for it
	if err := keeper.Start(); err != nil {
		return "", err
	}
	ended := make(chan error, 1)
	go func() { ended <- keeper.Wait() }()
	for {
		if dsn, ok := answers(ctx, root); ok {
			return dsn, nil
		}
		select {
		case err := <-ended:
			text, _ := os.ReadFile(filepath.Join(root, "error"))
			return "", fmt.Errorf("the test cluster ended at its start: %w: %s", err, text)
		case <-ctx.Done():
			return "", ctx.Err()
		case <-time.After(poll):
		}
	}
}

// keep runs the cluster until nobody has used it for a while, then removes it.
func keep(root string) error {
	data := filepath.Join(root, "cluster")
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := discard(ctx, data); err != nil {
		return err
	}
	s, err := local.Start(ctx, local.Options{Root: data, Settings: quick, Bin: os.Getenv("NIGHTSHIFT_PG_BIN")})
	if err != nil {
		return err
	}
	side := filepath.Join(root, "dsn."+strconv.Itoa(os.Getpid()))
	if err := os.WriteFile(side, []byte(s.AdminDSN()), 0o600); err != nil {
		return errors.Join(err, s.Abandon())
	}
	if err := os.Rename(side, filepath.Join(root, "dsn")); err != nil {
		return errors.Join(err, s.Abandon())
	}
	users, err := unused(s, filepath.Join(root, "users"))
	if err != nil {
		return errors.Join(err, s.Abandon())
	}
	defer users.Close()
	_ = os.Remove(filepath.Join(root, "dsn"))
	_ = s.Abandon() // its data are thrown away
	return os.RemoveAll(data)
}

// discard throws away what a killed keeper left, once its server has gone: starting and ending it sees to that.
func discard(ctx context.Context, data string) error {
	if _, err := os.Stat(filepath.Join(data, "data", "postmaster.pid")); err == nil {
		s, err := local.Start(ctx, local.Options{Root: data, Settings: quick, Bin: os.Getenv("NIGHTSHIFT_PG_BIN")})
		if err == nil {
			_ = s.Abandon()
		} else if errors.Is(err, local.ErrInUse) || strings.Contains(err.Error(), "still runs") {
			return err
		}
	}
	return os.RemoveAll(data)
}

// unused returns, holding the users' lock alone, once nobody else has held it for a while or the server has ended.
func unused(s *local.Server, path string) (*os.File, error) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for idle := time.Duration(0); ; idle += time.Second {
		file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
		if err != nil {
			return nil, err
		}
		err = syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil && idle >= linger {
			return file, nil
		}
		_ = file.Close()
		if err != nil {
			idle = 0
		}
		select {
		case <-s.Done():
			return os.OpenFile(path, os.O_RDWR, 0o600)
		case <-tick.C:
		}
	}
}
