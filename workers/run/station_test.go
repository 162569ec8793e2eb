package run

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"nightshift/workers"
	"nightshift/workers/protocol"
	"nightshift/workers/workertest"
)

// station runs a worker with all task types until the test ends.
func stationed(t *testing.T, o Options) *workertest.Server {
	t.Helper()
	s := workertest.New(t)
	w, err := workers.New(workers.Options{
		Server: s.URL, ClientID: workertest.ClientID, ClientSecret: workertest.ClientSecret, Name: "station", Slots: 4,
		LeaseSeconds: 3, KeepSignals: true, Logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Register(w, o); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		select {
		case err := <-ended:
			if err != nil {
				t.Error(err)
			}
		case <-time.After(workertest.Patience):
			t.Error("the worker did not end")
		}
	})
	return s
}

// done executes one task and decodes its result.
func done[T any](t *testing.T, s *workertest.Server, taskType string, payload any) T {
	t.Helper()
	task := s.Submit(taskType, payload)
	s.Await(taskType+" to end", func() bool { return len(task.Outcomes) > 0 })
	var out T
	last := task.Outcomes[0]
	if last.Status != protocol.StatusSucceeded {
		t.Fatalf("%s %s: %+v", taskType, last.Status, last.Error)
	}
	if err := json.Unmarshal(last.Result, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// failed executes one task that must fail and answers why.
func failed(t *testing.T, s *workertest.Server, taskType string, payload any, change ...func(*protocol.Lease)) *protocol.Error {
	t.Helper()
	task := s.Submit(taskType, payload, change...)
	s.Await(taskType+" to end", func() bool { return len(task.Outcomes) > 0 })
	if task.Outcomes[0].Status != protocol.StatusFailed {
		t.Fatalf("%s %v ended as %s", taskType, payload, task.Outcomes[0].Status)
	}
	return task.Outcomes[0].Error
}

type fields map[string]any

func standardLibrary(t *testing.T) string {
	t.Helper()
	return filepath.Join(goRoot(t), "src")
}

func TestRegisterKnowsItsTypes(t *testing.T) {
	w, err := workers.New(workers.Options{Server: "http://127.0.0.1:1", ClientID: "a", ClientSecret: "b", Name: "w"})
	if err != nil {
		t.Fatal(err)
	}
	added, err := Register(w, Options{}, "document.*", "command")
	if err != nil || len(added) != 3 {
		t.Errorf("added %v, %v", added, err)
	}
	if _, err := Register(w, Options{}, "document.burn"); err == nil {
		t.Error("a type nobody has was taken")
	}
	if _, err := Register(w, Options{Commands: []string{"no-such-program-here"}}); err == nil {
		t.Error("a command that does not exist was allowed")
	}
}

func waitFor(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for until := time.Now().Add(workertest.Patience); !holds(); {
		if time.Now().After(until) {
			t.Fatalf("waited in vain for %s", what)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// goRoot is where the Go distribution's own documents stand.
func goRoot(t *testing.T) string {
	t.Helper()
	out, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		t.Skip("no go command here to ask where its sources are")
	}
	return strings.TrimSpace(string(out))
}
