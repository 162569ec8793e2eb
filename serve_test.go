package main

import (
	"context"
	"encoding/base64"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"nightshift/models/postgres/pgtest"
	"nightshift/scheduler/engine"
	"nightshift/scheduler/loop"
	"nightshift/workers"
	"nightshift/workers/client"
)

// testReplica serves on a port of its own until the test ends.
func testReplica(t *testing.T, extra ...string) *replica {
	t.Helper()
	data := t.TempDir()
	environ := append([]string{
		"DATABASE_URL=" + pgtest.New(t), "NIGHTSHIFT_LISTEN=127.0.0.1:0", "NIGHTSHIFT_DATA=" + data,
		"NIGHTSHIFT_SECRET_KEY=" + base64.StdEncoding.EncodeToString(make([]byte, 32)),
		"NIGHTSHIFT_BOOTSTRAP_CLIENT_ID=boot", "NIGHTSHIFT_BOOTSTRAP_CLIENT_SECRET=boot-secret-boot-secret-boot-secret",
	}, extra...)
	config, err := loadConfig(environ, data)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	r, err := newReplica(ctx, &ground{config: config, log: slog.New(slog.NewTextHandler(t.Output(), nil)), patience: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- r.run(ctx) }()
	t.Cleanup(func() {
		stop()
		select {
		case err := <-ended:
			if err != nil {
				t.Errorf("the replica ended with %v", err)
			}
		case <-time.After(time.Minute):
			t.Fatal("the replica did not end")
		}
		r.close()
	})
	return r
}

func (r *replica) testClient(t *testing.T, tenant string) *client.Client {
	t.Helper()
	headers := map[string]string{}
	if tenant != "" {
		headers["Nightshift-Tenant"] = tenant
	}
	c, err := client.New(client.Options{Server: r.url, CAFile: r.caFile, ClientID: "boot", ClientSecret: "boot-secret-boot-secret-boot-secret", Headers: headers})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func ask(t *testing.T, c *client.Client, method, path string, in, out any) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	if _, err := c.Persist(ctx, client.Call{Method: method, Path: path, In: in, Out: out, Timeout: 35 * time.Second}); err != nil {
		t.Fatalf("%s %s: %v", method, path, err)
	}
}

// A worker with the authority's certificate registers over HTTPS with a self-signed server and does real work; one
// without it does not get in.
func TestAWorkerRegistersOverHTTPSWithASelfSignedServer(t *testing.T) {
	r := testReplica(t, "NIGHTSHIFT_TLS=self-signed")
	if r.caFile == "" || filepath.Base(r.caFile) != "ca.pem" {
		t.Fatalf("the authority stands in %q", r.caFile)
	}
	ask(t, r.testClient(t, ""), "POST", "/v1/tenants", map[string]any{"slug": "acorn", "name": "Acorn", "weight": 1, "timezone": "UTC"}, nil)
	var key demoKey
	ask(t, r.testClient(t, ""), "POST", "/v1/api-keys", map[string]any{"name": "workers", "scopes": []string{"workers:register"}}, &key)

	options := workers.Options{
		Server: r.url, CAFile: r.caFile, ClientID: key.ClientID, ClientSecret: key.ClientSecret, Name: "summarizer", Slots: 1,
		TaskTypes: []string{"text.summarize"}, KeepSignals: true, Logger: slog.New(slog.DiscardHandler),
	}
	ctx, stop := context.WithCancel(context.Background())
	worked := make(chan error, 1)
	go func() { worked <- work(ctx, options, agentOptions{folder: t.TempDir()}) }()
	t.Cleanup(func() {
		stop()
		select {
		case <-worked:
		case <-time.After(time.Minute):
			t.Error("the worker did not end")
		}
	})
	tenant := r.testClient(t, "acorn")
	var task struct {
		ID     string         `json:"id"`
		State  string         `json:"state"`
		Result map[string]any `json:"result"`
	}
	ask(t, tenant, "POST", "/v1/tasks", map[string]any{"type": "text.summarize", "payload": map[string]any{"text": "The night is long. The work is done by machines. People sleep."}}, &task)
	for end := time.Now().Add(time.Minute); task.State != "succeeded" && time.Now().Before(end); {
		ask(t, tenant, "GET", fmt.Sprintf("/v1/tasks/%s/wait?timeout_seconds=20", task.ID), nil, &task)
	}
	if task.State != "succeeded" || len(task.Result) == 0 {
		t.Fatalf("the task is %s with %v", task.State, task.Result)
	}

	stranger, err := client.New(client.Options{Server: r.url, ClientID: key.ClientID, ClientSecret: key.ClientSecret})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := stranger.Do(t.Context(), client.Call{Method: "GET", Path: "/v1/whoami"}); err == nil {
		t.Fatal("a certificate of an unknown authority was trusted")
	}
}

// The sweep of leases is recorded by whoever decides: what ended since the last record, over rebuilds and for a brain that begins.
func TestWhatTheSweepOfLeasesFoundIsCountedOnce(t *testing.T) {
	figures := func(brain bool, silent, timedOut int64) loop.Figures {
		f := loop.Figures{Role: loop.Role{Brain: brain}}
		if brain {
			f.Board = &engine.Stats{LeasesLost: map[string]int64{"silent": silent, "timed_out": timedOut, "replaced": 7}}
		}
		return f
	}
	l := &leaseSweeps{}
	for i, c := range []struct {
		of      loop.Figures
		n       int64
		decides bool
	}{
		{figures(false, 0, 0), 0, false},
		{figures(true, 2, 1), 3, true},
		{figures(true, 2, 1), 0, true},
		{figures(true, 4, 2), 3, true},
		{figures(false, 0, 0), 0, false},
		{figures(true, 1, 0), 1, true},
		{loop.Figures{Role: loop.Role{Brain: true}}, 0, false},
		{figures(true, 2, 0), 1, true},
	} {
		if n, decides := l.since(c.of); n != c.n || decides != c.decides {
			t.Errorf("step %d: %d, %v, want %d, %v", i, n, decides, c.n, c.decides)
		}
	}
}

func TestATakenPortIsAClearError(t *testing.T) {
	r := testReplica(t)
	config := r.ground.config
	config.Listen = r.listener.Addr().String()
	_, err := newReplica(context.Background(), &ground{config: config, log: slog.New(slog.DiscardHandler)})
	if err == nil || !strings.Contains(err.Error(), "NIGHTSHIFT_LISTEN") || !strings.Contains(err.Error(), "in use") {
		t.Fatalf("a taken port: %v", err)
	}
}

func TestTheDataFolderIsOpenToTheDatabaseWhateverTheUmask(t *testing.T) {
	defer syscall.Umask(syscall.Umask(0o077))
	folder := filepath.Join(t.TempDir(), "nightshift", "data")
	if err := makeFolder(folder); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(folder)
	if err != nil || info.Mode().Perm() != 0o755 {
		t.Fatalf("%v, %v", info.Mode(), err)
	}
	if err := os.Chmod(folder, 0o711); err != nil {
		t.Fatal(err)
	}
	if err := makeFolder(folder); err != nil {
		t.Fatal(err)
	}
	if info, _ := os.Stat(folder); info.Mode().Perm() != 0o711 {
		t.Fatalf("a folder that was there has mode %v now", info.Mode())
	}
}
