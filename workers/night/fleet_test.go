package night

import (
	"context"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// Started as a worker, the test binary stands in for one: it lives until it is
// told to end.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "worker" {
		told := make(chan os.Signal, 1)
		signal.Notify(told, syscall.SIGTERM)
		select {
		case <-told:
		case <-time.After(5 * time.Minute): // no test needs it longer
		}
		return
	}
	os.Exit(m.Run())
}

func fleetOptions(t *testing.T) FleetOptions {
	t.Helper()
	data := t.TempDir()
	token := filepath.Join(data, "token")
	if err := os.WriteFile(token, []byte("a:b"), 0o600); err != nil {
		t.Fatal(err)
	}
	return FleetOptions{Executable: os.Args[0], Server: "http://127.0.0.1:1", TokenFile: token, DataDir: data, Docs: data}
}

func started(t *testing.T, o FleetOptions) *Fleet {
	t.Helper()
	f, err := StartFleet(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return f
}

func TestLivingWorkersAreAdopted(t *testing.T) {
	o := fleetOptions(t)
	first := started(t, o)
	if first.Started != 4 || first.Adopted != 0 {
		t.Fatalf("started %d, adopted %d", first.Started, first.Adopted)
	}
	second := started(t, o)
	if second.Started != 0 || second.Adopted != 4 {
		t.Errorf("the second start started %d and adopted %d", second.Started, second.Adopted)
	}
	for name, pid := range first.PIDs() {
		if second.PIDs()[name] != pid {
			t.Errorf("%s was %d and is %d", name, pid, second.PIDs()[name])
		}
	}
	o.Server = "http://127.0.0.1:2"
	third := started(t, o)
	if third.Started != 4 {
		t.Errorf("for another server %d were started", third.Started)
	}
	for name, pid := range first.PIDs() {
		if began(pid) != "" {
			t.Errorf("%s of the old server still runs as %d", name, pid)
		}
	}
}

func TestADeadWorkerIsStartedAgain(t *testing.T) {
	f := started(t, fleetOptions(t))
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go f.Keep(ctx)
	pid := f.PIDs()["reader"]
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	for until := time.Now().Add(time.Minute); f.PIDs()["reader"] == pid; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(until) {
			t.Fatal("the reader was not started again")
		}
	}
	if now := f.PIDs()["reader"]; began(now) == "" {
		t.Errorf("process %d does not run", now)
	}
}

// A number that another process has by now is not taken for a worker.
func TestAReusedProcessNumberIsNoWorker(t *testing.T) {
	own := process{PID: os.Getpid(), Began: began(os.Getpid())}
	if !own.alive() {
		t.Error("this process is not found alive")
	}
	own.Began = "long ago"
	if own.alive() || (process{PID: os.Getpid()}).alive() || (process{}).alive() {
		t.Error("a stranger was taken for a worker")
	}
}

func TestStopEndsEveryWorker(t *testing.T) {
	o := fleetOptions(t)
	f := started(t, o)
	pids := f.PIDs()
	if err := f.Stop(context.Background()); err != nil {
		t.Fatal(err)
	}
	for name, pid := range pids {
		if began(pid) != "" {
			t.Errorf("%s still runs as %d", name, pid)
		}
	}
	if left, err := filepath.Glob(filepath.Join(o.DataDir, "fleet", "*.json")); err != nil || len(left) > 0 {
		t.Errorf("left %v, %v", left, err)
	}
}
