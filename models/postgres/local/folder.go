package local

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

const mostLog = 16 << 20

// ErrInUse says that another live process runs the database of the folder.
var ErrInUse = errors.New("in use by another process")

// folder is where one cluster lives, and the account that runs it.
type folder struct {
	path    string
	account *account // nil: the process's own
}

func (f folder) data() string    { return filepath.Join(f.path, "data") }
func (f folder) run() string     { return filepath.Join(f.path, "run") }
func (f folder) logPath() string { return filepath.Join(f.path, "postgres.log") }

// openFolder makes the folder and checks what would otherwise fail later with a worse message.
func openFolder(path string) (folder, error) {
	acc, err := serverAccount()
	if err != nil {
		return folder{}, err
	}
	if path, err = filepath.Abs(path); err != nil {
		return folder{}, err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return folder{}, err
	}
	f := folder{path: path, account: acc}
	if err := f.makeOwn(path); err != nil {
		return folder{}, err
	}
	// Processes are recognised by their working directory, which has no symbolic links in it.
	if f.path, err = filepath.EvalSymlinks(path); err != nil {
		return folder{}, err
	}
	if socket := filepath.Join(f.run(), ".s.PGSQL."+port); len(socket) > mostSocket {
		return folder{}, fmt.Errorf("the socket path %s has %d bytes and a socket allows %d: choose a shorter data folder",
			socket, len(socket), mostSocket)
	}
	if err := f.reachable(); err != nil {
		return folder{}, err
	}
	return f, f.makeOwn(f.run())
}

// makeOwn makes a folder that belongs to the account of the server.
func (f folder) makeOwn(path string) error {
	if err := os.Mkdir(path, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	if f.account == nil {
		return nil
	}
	return os.Chown(path, f.account.uid, f.account.gid)
}

// reachable tells whether the account of the server may enter every folder above its own.
func (f folder) reachable() error {
	if f.account == nil {
		return nil
	}
	for dir := filepath.Dir(f.path); ; dir = filepath.Dir(dir) {
		info, err := os.Stat(dir)
		if err != nil {
			return err
		}
		if !f.account.mayEnter(info) {
			return fmt.Errorf("the folder %s is closed to user %s, who runs PostgreSQL (it refuses to run as root): choose a data folder elsewhere, or open it with chmod o+x",
				dir, f.account.name)
		}
		if dir == filepath.Dir(dir) {
			return nil
		}
	}
}

// lock holds the folder until the returned file is closed, or the process ends in whatever way.
func (f folder) lock() (*os.File, error) {
	file, err := os.OpenFile(filepath.Join(f.path, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		holder, _ := io.ReadAll(io.LimitReader(file, 20))
		_ = file.Close()
		return nil, fmt.Errorf("the database folder %s is %w (pid %s)", f.path, ErrInUse, strings.TrimSpace(string(holder)))
	}
	if err := file.Truncate(0); err == nil {
		_, err = file.WriteAt([]byte(strconv.Itoa(os.Getpid())), 0)
		if err == nil {
			return file, nil
		}
	}
	_ = file.Close()
	return nil, fmt.Errorf("writing %s: %w", file.Name(), err)
}

// version is the major version that made the data, or empty where there is none yet.
func (f folder) version() (string, error) {
	text, err := os.ReadFile(filepath.Join(f.data(), "PG_VERSION"))
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	return strings.TrimSpace(string(text)), err
}

// initialise makes the cluster in a side folder and renames it, so that a killed first start leaves no half of one.
func (f folder) initialise(ctx context.Context, bin string) error {
	if entries, err := os.ReadDir(f.data()); err == nil && len(entries) > 0 {
		return fmt.Errorf("%s holds files but no PG_VERSION: not a database this could run, and not one to overwrite", f.data())
	}
	for _, name := range []string{"password", "login.password"} {
		if err := f.writeSecret(name); err != nil {
			return err
		}
	}
	side := f.data() + ".init"
	if err := os.RemoveAll(side); err != nil {
		return err
	}
	initdb := f.command(bin, "initdb", "-D", side, "-U", Superuser, "-A", "scram-sha-256",
		"--pwfile="+filepath.Join(f.path, "password"), "-E", "UTF8", "--locale="+locale, "-k")
	out, err := output(ctx, initdb)
	if err != nil {
		return fmt.Errorf("initdb: %w\n%s", err, out)
	}
	_ = os.Remove(f.data()) // an empty folder, or nothing
	return os.Rename(side, f.data())
}

// output runs a command that ends by itself; a context that ends first kills it.
func output(ctx context.Context, c *exec.Cmd) ([]byte, error) {
	stop := make(chan struct{})
	defer close(stop)
	var text strings.Builder
	c.Stdout, c.Stderr = &text, &text
	if err := c.Start(); err != nil {
		return nil, err
	}
	go func() {
		select {
		case <-ctx.Done():
			_ = c.Process.Kill()
		case <-stop:
		}
	}()
	err := c.Wait()
	return []byte(text.String()), errors.Join(err, ctx.Err())
}

func (f folder) writeSecret(name string) error {
	path := filepath.Join(f.path, name)
	if err := os.WriteFile(path, []byte(rand.Text()+rand.Text()), 0o600); err != nil {
		return err
	}
	if f.account == nil {
		return nil
	}
	return os.Chown(path, f.account.uid, f.account.gid)
}

func (f folder) openLog() (*os.File, error) {
	if info, err := os.Stat(f.logPath()); err == nil && info.Size() > mostLog {
		if err := os.Rename(f.logPath(), f.logPath()+".old"); err != nil {
			return nil, err
		}
	}
	return os.OpenFile(f.logPath(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
}

func (f folder) logTail() string {
	text, _ := os.ReadFile(f.logPath())
	return string(text[max(0, len(text)-2000):])
}

// command is a PostgreSQL program run by the server's account, in a process group of its own so that a Ctrl-C at the
// terminal reaches the owner alone, which then stops the server in order.
func (f folder) command(bin, name string, args ...string) *exec.Cmd {
	c := exec.Command(filepath.Join(bin, name), args...)
	c.Dir = f.path
	c.Env = append(os.Environ(), "LC_ALL="+locale, "TZ=UTC")
	c.SysProcAttr = tied()
	if f.account != nil {
		c.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(f.account.uid), Gid: uint32(f.account.gid)}
	}
	return c
}
