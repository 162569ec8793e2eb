package forward

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"nightshift/models"
	"nightshift/models/memory"
	"nightshift/scheduler/engine"
	"nightshift/scheduler/loop"
)

// member is one of several replicas over the same rows, reached over HTTP.
type member struct {
	*Door
	loop *loop.Loop
	stop func()
}

func (m *member) role() (bool, string) {
	role := m.loop.Role()
	return role.Brain, role.Address
}

func join(t *testing.T, store engine.Store) *member {
	var m member
	var handle func(context.Context, []byte, Sender) (int, []byte)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return // the caller has gone
		}
		status, out := handle(r.Context(), body, SenderOf(r.Header.Get))
		w.WriteHeader(status)
		_, _ = w.Write(out)
	}))
	t.Cleanup(server.Close)
	m.loop = loop.New(store, loop.Options{Address: server.URL, Logger: slog.New(slog.DiscardHandler)})
	handle = Handler(m.loop, func(string) error { return nil })
	m.Door = New(Options{Local: m.loop, Role: m.role, Token: token, Logger: slog.New(slog.DiscardHandler)})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); _ = m.loop.Run(ctx) }()
	m.stop = func() { cancel(); <-done }
	t.Cleanup(m.stop)
	return &m
}

// Submits and claims go through either replica, also while the brain is handed over: every submit is acknowledged and
// every task is leased once.
func TestTwoReplicasActAsOne(t *testing.T) {
	store := memory.New(func() models.Instant { return models.InstantOf(time.Now()) })
	one := join(t, store)
	ask := func(m *member, cmd *engine.Command) *engine.Answer {
		t.Helper()
		cmd.ID = newID()
		answer, err := m.Do(t.Context(), cmd)
		if err != nil {
			t.Errorf("%+v: %v", cmd, err)
			return &engine.Answer{}
		}
		return answer
	}
	tenant := ask(one, &engine.Command{Configure: &engine.Configure{New: true, Tenant: &models.Tenant{ID: newID(), Slug: "acme", Name: "Acme", Weight: 1, Timezone: "UTC"}}}).Tenant
	env := ask(one, &engine.Command{Configure: &engine.Configure{New: true, Environment: &models.Environment{ID: newID(), Tenant: tenant.Number, Name: "night", Kind: "production"}}}).Environment.Env
	two := join(t, store)
	worker := ask(two, &engine.Command{Register: &engine.Register{Worker: models.Worker{
		ID: newID(), Session: newID(), Name: "w", Instance: "w",
		Pool: "cpu", CPUMilli: 64_000, MemoryMB: 64_000, Slots: 10_000, LeaseSeconds: 30,
	}}}).Worker

	const each = 150
	var mu sync.Mutex
	leased := map[models.ID]int{}
	claiming, enough := context.WithCancel(t.Context())
	defer enough()
	var claimers, submitters sync.WaitGroup
	for _, m := range []*member{one, two} {
		for range 2 {
			claimers.Go(func() {
				for claiming.Err() == nil {
					answer, err := m.Do(claiming, &engine.Command{ID: newID(), Claim: &engine.Claim{Worker: worker.ID, Session: worker.Session, Most: 5, WaitMS: 20_000}})
					if err != nil {
						continue // it stopped, or the test is over
					}
					mu.Lock()
					for i := range answer.Claimed.Leases {
						leased[answer.Claimed.Leases[i].Row.ID]++
					}
					if len(leased) == 2*each {
						enough()
					}
					mu.Unlock()
				}
			})
		}
	}
	for r, m := range []*member{two, one} {
		submitters.Go(func() {
			for i := range each {
				task := engine.NewTask{
					ID: newID(), Class: models.Class{Type: "text.embed"}, MaxAttempts: 3,
					Input: json.RawMessage(`{}`), Payload: json.RawMessage(fmt.Sprintf(`{"n":%d}`, i)),
				}
				door := m
				if r == 1 && i >= each/2 {
					door = two // its own replica has stopped
				}
				ask(door, &engine.Command{Tenant: tenant.Number, Submit: &engine.Submit{Env: env, Tasks: []engine.NewTask{task}}})
				if r == 1 && i == each/2 {
					one.stop()
				}
			}
		})
	}
	submitters.Wait()
	select {
	case <-claiming.Done():
	case <-time.After(time.Minute):
		enough()
		t.Error("not every task was claimed")
	}
	claimers.Wait()
	for id, n := range leased {
		if n != 1 {
			t.Errorf("task %s was leased %d times", id.Text(models.TaskPrefix), n)
		}
	}
	if role := two.loop.Role(); !role.Brain || role.Epoch != 2 || len(leased) != 2*each {
		t.Errorf("%d of %d tasks were leased; %+v", len(leased), 2*each, role)
	}
}
