package local

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	reapEvery    = 50 * time.Millisecond
	reapInsist   = 20 * time.Second
	reapPatience = 30 * time.Second
)

// reap clears what an unclean end left behind. The lock is ours, so no living owner runs this folder; its server may
// still be on its way down. The pid file goes only when no process of PostgreSQL works in the data folder any more: it
// is what keeps two servers from sharing one.
func (f folder) reap(ctx context.Context) error {
	pidFile := filepath.Join(f.data(), "postmaster.pid")
	text, err := os.ReadFile(pidFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	first, _, _ := strings.Cut(string(text), "\n")
	postmaster, _ := strconv.Atoi(strings.TrimSpace(first)) // an empty pid file names nobody
	began, asked, insisted := time.Now(), false, false
	for {
		pids := workingIn(f.data(), postmaster)
		waited := time.Since(began)
		switch {
		case len(pids) == 0:
			return f.clear(pidFile)
		case waited > reapPatience:
			return fmt.Errorf("PostgreSQL still runs in %s (pids %v), left by an earlier start", f.data(), pids)
		case !asked:
			asked = true
			for _, pid := range pids {
				if pid == postmaster {
					_ = syscall.Kill(pid, syscall.SIGINT)
				}
			}
		case waited > reapInsist && !insisted:
			insisted = true
			for _, pid := range pids {
				_ = syscall.Kill(pid, syscall.SIGQUIT)
			}
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(reapEvery):
		}
	}
}

func (f folder) clear(pidFile string) error {
	socket := filepath.Join(f.run(), ".s.PGSQL."+port)
	for _, path := range []string{socket, socket + ".lock", pidFile} {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}
