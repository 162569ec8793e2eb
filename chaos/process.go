package chaos

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"syscall"
	"testing"
	"time"
)

// Process is one program under test. What it says goes to a file.
type Process struct {
	Name string
	Log  string
	cmd  *exec.Cmd
	done chan struct{}
	err  error // set before done closes
}

// binary is the program, built once for the whole run.
var binary = sync.OnceValues(func() (string, error) {
	if given := os.Getenv("NIGHTSHIFT_CHAOS_BINARY"); given != "" {
		return given, nil
	}
	path := filepath.Join(scratch(), "nightshift")
	build := exec.Command("go", "build", "-o", path, "nightshift")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building the binary: %w\n%s", err, out)
	}
	return path, nil
})

var scratch = sync.OnceValue(func() string {
	dir, err := os.MkdirTemp("", "nightshift-chaos-")
	if err == nil {
		err = os.Chmod(dir, 0o755) // the account that runs PostgreSQL for root must reach its folder below
	}
	if err != nil {
		panic(err)
	}
	return dir
})

// spawn starts a program that dies with this one.
func spawn(t testing.TB, name string, env []string, program string, args ...string) *Process {
	t.Helper()
	p := &Process{Name: name, Log: filepath.Join(scratch(), fmt.Sprintf("%s-%d.log", name, time.Now().UnixNano())), done: make(chan struct{})}
	log, err := os.Create(p.Log)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close() // the child has its own descriptor
	p.cmd = exec.Command(program, args...)
	p.cmd.Env, p.cmd.Stdout, p.cmd.Stderr = env, log, log
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	started := make(chan error)
	go func() {
		runtime.LockOSThread() // the death signal is tied to the thread that started the child
		err := p.cmd.Start()
		started <- err
		if err == nil {
			p.err = p.cmd.Wait()
			close(p.done)
		}
	}()
	if err := <-started; err != nil {
		t.Fatalf("starting %s: %v", name, err)
	}
	t.Cleanup(func() {
		p.Kill()
		if said := p.disgrace(); said != "" {
			t.Errorf("I8: %s: %s", p.Log, said)
		}
		if t.Failed() {
			t.Logf("the end of %s:\n%s", p.Log, p.tail(3000))
		}
	})
	return p
}

// Signal reaches the process itself; one that has ended takes it quietly.
func (p *Process) Signal(s syscall.Signal) { _ = p.cmd.Process.Signal(s) }

// Kill ends it as a crash would, and waits until it has gone.
func (p *Process) Kill() {
	p.Signal(syscall.SIGKILL)
	<-p.done
}

// Freeze stops it where it stands; Thaw lets it go on as if nothing had been.
func (p *Process) Freeze() { p.Signal(syscall.SIGSTOP) }

// Thaw ends a Freeze.
func (p *Process) Thaw() { p.Signal(syscall.SIGCONT) }

// Terminate asks it to end in order; the exit code tells whether it did.
func (p *Process) Terminate(within time.Duration) (int, error) {
	p.Signal(syscall.SIGTERM)
	select {
	case <-p.done:
		return p.cmd.ProcessState.ExitCode(), nil
	case <-time.After(within):
		return -1, fmt.Errorf("%s did not end within %s", p.Name, within)
	}
}

// Alive tells whether it runs.
func (p *Process) Alive() bool {
	select {
	case <-p.done:
		return false
	default:
		return true
	}
}

func (p *Process) said() []byte {
	text, _ := os.ReadFile(p.Log) // made at the start
	return text
}

func (p *Process) tail(n int) string {
	text := p.said()
	return string(text[max(0, len(text)-n):])
}

// disgrace finds what no log may hold.
func (p *Process) disgrace() string {
	text := p.said()
	for _, bad := range []string{"panic:", "fatal error:", "SIGSEGV", "DATA RACE", "runtime error"} {
		if at := bytes.Index(text, []byte(bad)); at >= 0 {
			return string(text[at:min(len(text), at+2000)])
		}
	}
	return ""
}
