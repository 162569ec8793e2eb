package main

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"nightshift/scheduler/sim"
	"nightshift/scheduler/sim/scenario"
	"nightshift/workers"
	"nightshift/workers/client"
	"nightshift/workers/protocol"
)

// shift is a server after a little shift of two tenants, with the waits that its own list of tasks tells.
type shift struct {
	*replica
	t        *testing.T
	from, to time.Time
	keyFile  string
	waits    map[string]time.Duration // the mean, by tenant
}

const shiftTasks = 60

func newShift(t *testing.T) *shift {
	s := &shift{replica: testReplica(t), t: t, from: time.Now().Add(-time.Hour), keyFile: filepath.Join(t.TempDir(), "key"), waits: map[string]time.Duration{}}
	platform := s.testClient(t, "")
	for slug, weight := range map[string]int{"acorn": 3, "birch": 1} {
		ask(t, platform, "POST", "/v1/tenants", map[string]any{"slug": slug, "name": slug, "weight": weight}, nil)
		ask(t, s.testClient(t, slug), "POST", "/v1/lanes", map[string]any{"name": "nightly", "kind": "batch", "task_types": []string{"dream.*"}}, nil)
	}
	birch := s.testClient(t, "birch")
	ask(t, birch, "PATCH", "/v1/lanes/io", map[string]any{"max_concurrent": 7}, nil)
	ask(t, birch, "PUT", "/v1/quotas", map[string]any{"max_concurrent": 50}, nil)
	ask(t, birch, "PUT", "/v1/rate-limits/bank", map[string]any{"limit": 500, "per_seconds": 1}, nil)
	var key demoKey
	ask(t, platform, "POST", "/v1/api-keys", map[string]any{"name": "workers", "scopes": []string{"workers:register"}}, &key)
	for slug := range s.tenants() {
		tasks := make([]map[string]any, shiftTasks)
		for i := range tasks {
			tasks[i] = map[string]any{"type": "dream.short", "resources": map[string]any{"cpu": 1}, "concurrency": []any{map[string]any{"key": "a", "limit": 90}, map[string]any{"key": "b", "limit": 80}}, "rate_keys": []string{"bank"}, "payload": map[string]any{"secret": "not exported"}}
		}
		ask(t, s.testClient(t, slug), "POST", "/v1/tasks/batch", map[string]any{"tasks": tasks}, nil)
	}
	w, err := workers.New(workers.Options{
		Server: s.url, ClientID: key.ClientID, ClientSecret: key.ClientSecret, Name: "dreamer", Slots: 2, Resources: protocol.Resources{CPU: 8}, KeepSignals: true, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	w.Handle("dream.*", func(ctx context.Context, _ *workers.Task) (any, error) {
		return nil, client.Sleep(ctx, 40*time.Millisecond)
	})
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		select {
		case <-ended:
		case <-time.After(time.Minute):
			t.Error("the worker did not end")
		}
	})
	for slug := range s.tenants() {
		s.waited(slug)
	}
	s.straighten()
	for slug := range s.tenants() {
		s.waits[slug] = s.waited(slug)
	}
	s.to = time.Now().Add(time.Hour)
	if err := os.WriteFile(s.keyFile, []byte("boot:boot-secret-boot-secret-boot-secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *shift) tenants() map[string]bool { return map[string]bool{"acorn": true, "birch": true} }

// straighten keeps the order in which the tasks started and nothing of how fast this machine was: two at a time, a second each.
func (s *shift) straighten() {
	err := s.db.Platform().Write(s.t.Context(), func(tx pgx.Tx) error {
		_, err := tx.Exec(s.t.Context(), `UPDATE tasks t SET created_at = $1, ready_at = $1, started_at = $1 + turn * 1000000, finished_at = $1 + (turn + 1) * 1000000
			FROM (SELECT env, id, (row_number() OVER (ORDER BY started_at, id) - 1) / 2 AS turn FROM tasks) o WHERE o.env = t.env AND o.id = t.id`,
			s.from.Add(10*time.Minute).UnixMicro())
		return err
	})
	if err != nil {
		s.t.Fatal(err)
	}
}

// waited is the mean wait of a tenant's tasks, once all have ended.
func (s *shift) waited(slug string) time.Duration {
	for end := time.Now().Add(5 * time.Minute); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		var page struct {
			Data []taskRow `json:"data"`
		}
		ask(s.t, s.testClient(s.t, slug), "GET", "/v1/tasks?limit=500&state=succeeded", nil, &page)
		if len(page.Data) < shiftTasks {
			continue
		}
		total := time.Duration(0)
		for i := range page.Data {
			total += page.Data[i].StartedAt.Sub(*page.Data[i].ReadyAt)
		}
		return total / shiftTasks
	}
	s.t.Fatalf("the tasks of %s did not end", slug)
	return 0
}

func (s *shift) export(more ...string) (string, int) {
	var out, errs bytes.Buffer
	args := append([]string{"config", "export", "--server", s.url, "--token-file", s.keyFile, "--trace-from", s.from.Format(time.RFC3339), "--trace-to", s.to.Format(time.RFC3339)}, more...)
	code := run(context.Background(), args, &out, &errs)
	return out.String() + errs.String(), code
}

func lived(t *testing.T, s sim.Scenario) map[string]sim.Wait {
	t.Helper()
	result := sim.New(s).Run()
	waits := map[string]sim.Wait{}
	for _, f := range result.Flows {
		if f.Ended != f.Tasks {
			t.Errorf("of %d tasks of %s %d ended", f.Tasks, f.Name, f.Ended)
		}
		waits[f.Tenant] = f.Wait
	}
	if len(result.Violations) > 0 {
		t.Error(result.Violations)
	}
	return waits
}

// What came to a server is exported and lived through again: with the same weights the waits are of the same order, and
// with other weights the tenants change places.
func TestARecordedShiftIsLivedThroughAgain(t *testing.T) {
	if testing.Short() {
		t.Skip("it works for some seconds")
	}
	s := newShift(t)
	text, code := s.export()
	if code != exitOK || strings.Contains(text, "not exported") {
		t.Fatalf("exit code %d\n%s", code, text)
	}
	world, err := scenario.Read(strings.NewReader(text))
	if err != nil {
		t.Fatalf("%v\n%.1500s", err, text)
	}
	if len(world.Tenants) != 2 || world.Tenants[0].Weight+world.Tenants[1].Weight != 4 || len(world.Workers) != 1 || world.Workers[0].Slots != 2 || len(world.Lanes) != 3 {
		t.Errorf("%+v", world)
	}
	for _, of := range world.Tenants {
		if of.Name == "birch" && (of.Quotas.MaxConcurrent == nil || *of.Quotas.MaxConcurrent != 50 || len(of.Rates) != 1 || of.Rates[0].Limit != 500) {
			t.Errorf("%+v", of)
		}
	}
	if a := world.Arrivals[0]; len(a.Concurrency) != 1 || a.Concurrency[0].Name != "b" || !slices.Equal(a.RateKeys, []string{"bank"}) || a.Ordered || a.LimitKey != "a" {
		t.Errorf("%+v", a.Concurrency)
	}
	for tenant, wait := range lived(t, world) {
		if ratio := wait.Mean.Seconds() / s.waits[tenant].Seconds(); wait.Tasks != shiftTasks || ratio < 1.0/3 || ratio > 3 {
			t.Errorf("%s: %d tasks waited %v in the replay, %v in truth", tenant, wait.Tasks, wait.Mean, s.waits[tenant])
		}
	}
	changed, err := scenario.Change(world, "tenant.birch.weight=30")
	if err != nil {
		t.Fatal(err)
	}
	if waits := lived(t, changed); waits["birch"].Mean >= waits["acorn"].Mean || s.waits["birch"] <= s.waits["acorn"] {
		t.Errorf("with ten times the weight birch waits %v, acorn %v; before %v", waits["birch"].Mean, waits["acorn"].Mean, s.waits)
	}
	one, code := s.export("--tenant", "birch")
	if world, err := scenario.Read(strings.NewReader(one)); code != exitOK || err != nil || len(world.Tenants) != 1 || len(world.Arrivals) != 1 {
		t.Errorf("of one tenant: exit code %d, %v", code, err)
	}
	var key demoKey
	ask(t, s.testClient(t, "birch"), "POST", "/v1/api-keys", map[string]any{"name": "reader", "scopes": []string{"tasks:read"}}, &key)
	own := filepath.Join(t.TempDir(), "own")
	if err := os.WriteFile(own, []byte(key.ClientID+":"+key.ClientSecret), 0o600); err != nil {
		t.Fatal(err)
	}
	one, code = s.export("--token-file", own)
	if world, err := scenario.Read(strings.NewReader(one)); code != exitOK || err != nil || len(world.Tenants) != 1 || world.Tenants[0].Name != "birch" {
		t.Errorf("with a key of its own: exit code %d, %v, %+v", code, err, world.Tenants)
	}
	for name, c := range map[string]struct {
		args []string
		code int
	}{
		"an unknown tenant":   {[]string{"--tenant", "cedar"}, exitUsage},
		"no moment":           {[]string{"--trace-from", "yesterday"}, exitUsage},
		"the wrong way":       {[]string{"--trace-from", s.to.Add(time.Hour).Format(time.RFC3339)}, exitUsage},
		"too many tasks":      {[]string{"--most", "100"}, exitFailure},
		"nothing there":       {[]string{"--trace-from", s.from.Add(-time.Hour).Format(time.RFC3339), "--trace-to", s.from.Format(time.RFC3339)}, exitFailure},
		"no such key":         {[]string{"--token-file", filepath.Join(t.TempDir(), "none")}, exitUsage},
		"no such folder":      {[]string{"--output", filepath.Join(t.TempDir(), "none", "day.yaml")}, exitFailure},
		"no server":           {[]string{"--server", "http://127.0.0.1:1", "--patience", "50ms"}, exitFailure},
		"no patience":         {[]string{"--patience", "0s"}, exitUsage},
		"no such environment": {[]string{"--environment", "staging"}, exitFailure},
	} {
		if text, code := s.export(c.args...); code != c.code {
			t.Errorf("%s: exit code %d, not %d: %s", name, code, c.code, text)
		}
	}
}
