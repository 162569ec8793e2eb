package relay_test

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"log/slog"
	mathrand "math/rand/v2"
	"sync"
	"testing"
	"time"

	"nightshift/models"
	"nightshift/models/postgres"
	"nightshift/models/postgres/pgtest"
	"nightshift/scheduler/engine"
	"nightshift/scheduler/loop"
	"nightshift/scheduler/relay"
)

func newID() models.ID {
	var entropy [10]byte
	_, _ = rand.Read(entropy[:])
	return models.NewID(models.InstantOf(time.Now()), entropy)
}

// Readers that leave and resume, while many write, see every change once and in order.
func TestResumingReadersSeeEveryChangeOnce(t *testing.T) {
	if testing.Short() {
		t.Skip("it needs PostgreSQL")
	}
	db, err := postgres.Open(t.Context(), postgres.Options{URL: pgtest.Migrated(t), ConnectTimeout: time.Minute, BatchTimeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	if err := db.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	silent := slog.New(slog.DiscardHandler)
	l := loop.New(db.Writer(), loop.Options{Address: "https://one", Logger: silent})
	r := relay.New(relay.Options{
		Tail: db.LastBatch, Wakes: []<-chan int64{l.Subscribe(t.Context())}, Buffer: 64, Logger: silent,
		Read: func(ctx context.Context, envs []int32, after int64, limit int) ([]relay.Packed, error) {
			rows, err := db.Events(ctx, envs, after, limit)
			packed := make([]relay.Packed, len(rows))
			for i, row := range rows {
				packed[i] = relay.Packed{Batch: row.Batch, Env: row.Env, Items: row.Items}
			}
			return packed, err
		},
	})
	life, end := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = l.Run(life) })
	running.Go(func() { _ = r.Run(life) })
	t.Cleanup(func() { end(); running.Wait() })
	env := furnish(t, l)

	const writers, each = 8, 250
	var all sync.WaitGroup
	for reader := range 4 {
		all.Go(func() { read(t, r, env, reader, writers*each) })
	}
	for range writers {
		all.Go(func() {
			for i := range each {
				task := engine.NewTask{ID: newID(), Class: models.Class{Type: "text.embed"}, MaxAttempts: 1, Input: json.RawMessage(`{}`)}
				if _, err := ask(l, &engine.Command{Submit: &engine.Submit{Env: env, Tasks: []engine.NewTask{task}}}); err != nil {
					t.Errorf("submit %d: %v", i, err)
				}
			}
		})
	}
	all.Wait()
}

// read follows an environment until it has seen a creation of so many tasks, leaving and resuming at random places.
func read(t *testing.T, r *relay.Relay, env int32, seed, tasks int) {
	rng := mathrand.New(mathrand.NewPCG(uint64(seed), 1))
	seen := map[models.ID]int{}
	var at relay.Position
	resumed, deadline := 0, time.Now().Add(2*time.Minute)
	for len(seen) < tasks && time.Now().Before(deadline) {
		ctx, leave := context.WithTimeout(t.Context(), 5*time.Second)
		left := 1 + rng.IntN(200)
		for e := range r.Subscribe(ctx, relay.Filter{Envs: []int32{env}, Names: []string{"task.created"}}, at) {
			if !before(at, e.Position) {
				t.Errorf("reader %d: %v came after %v", seed, e.Position, at)
			}
			at = e.Position
			seen[e.Task]++
			if left--; left == 0 || len(seen) == tasks {
				break
			}
		}
		leave()
		resumed++
	}
	for id, n := range seen {
		if n != 1 {
			t.Errorf("reader %d saw task %s %d times", seed, id.Text(models.TaskPrefix), n)
		}
	}
	if len(seen) != tasks {
		t.Errorf("reader %d saw %d of %d tasks in %d sittings", seed, len(seen), tasks, resumed)
	}
}

func before(a, b relay.Position) bool {
	return a.Batch < b.Batch || a.Batch == b.Batch && a.Index < b.Index
}

func ask(door engine.Door, cmd *engine.Command) (*engine.Answer, error) {
	cmd.ID = newID()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	return door.Do(ctx, cmd)
}

// furnish makes a tenant with an environment once the loop decides.
func furnish(t *testing.T, l *loop.Loop) int32 {
	for began := time.Now(); !l.Role().Brain; time.Sleep(5 * time.Millisecond) {
		if time.Since(began) > time.Minute {
			t.Fatal("nobody decides")
		}
	}
	tenant, err := ask(l, &engine.Command{Configure: &engine.Configure{New: true, Tenant: &models.Tenant{ID: newID(), Slug: "acme", Name: "Acme", Weight: 1, Timezone: "UTC"}}})
	if err != nil {
		t.Fatal(err)
	}
	env, err := ask(l, &engine.Command{Configure: &engine.Configure{New: true, Environment: &models.Environment{
		ID: newID(), Tenant: tenant.Tenant.Number, Name: "night", Kind: "production",
	}}})
	if err != nil {
		t.Fatal(err)
	}
	return env.Environment.Env
}
