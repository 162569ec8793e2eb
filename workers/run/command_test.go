package run

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"nightshift/workers/protocol"
)

func TestCommandRunsWhatIsAllowed(t *testing.T) {
	s := stationed(t, Options{Commands: []string{"sh", "cat"}})
	out := done[commandOut](t, s, "command", fields{"command": "cat", "stdin": "through"})
	if out.Stdout != "through" || out.ExitCode != 0 {
		t.Errorf("cat gave %+v", out)
	}
	out = done[commandOut](t, s, "command", fields{"command": "sh", "args": []string{"-c", "yes nightshift | head -c 400000"}})
	if !out.Cut || len(out.Stdout) > 3*keptEnd {
		t.Errorf("a long output came as %d bytes, cut %t", len(out.Stdout), out.Cut)
	}
	if err := failed(t, s, "command", fields{"command": "ls"}); err.Class != protocol.ClassPermissionDenied {
		t.Errorf("a command off the list failed with %+v", err)
	}
	err := failed(t, s, "command", fields{"command": "sh", "args": []string{"-c", "echo why >&2; exit 3"}})
	if !strings.Contains(err.Message, "exit status 3") || !strings.Contains(string(err.ProviderResponse), "why") {
		t.Errorf("a failing command left %+v", err)
	}
}

// A command's children end with it when its time is up.
func TestCommandLeavesNothingBehind(t *testing.T) {
	s := stationed(t, Options{Commands: []string{"sh"}})
	file := filepath.Join(t.TempDir(), "pid")
	script := "sleep 300 & echo $! > " + file + "; wait"
	var raw []byte
	for hard := 0.5; len(raw) == 0; hard *= 4 { // a slow machine has begun nothing by then
		if hard > 60 {
			t.Fatal("the command does not begin")
		}
		failed(t, s, "command", fields{"command": "sh", "args": []string{"-c", script}}, func(l *protocol.Lease) { l.Timeout.HardSeconds = &hard })
		raw, _ = os.ReadFile(file)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(raw)))
	if err != nil {
		t.Fatal(err)
	}
	waitFor(t, "the child to end", func() bool { return syscall.Kill(pid, 0) != nil || zombie(pid) })
}

// zombie tells a process that has ended but was not reaped, as an orphan is in
// a container without an init.
func zombie(pid int) bool {
	raw, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	return err == nil && strings.Contains(string(raw), ") Z ")
}
