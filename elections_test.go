package main

import (
	"context"
	"encoding/base64"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"nightshift/models/postgres/pgtest"
	"nightshift/workers/client"
)

var elections = flag.Int("elections", 4, "how many fresh databases TestFirstElections starts replicas on")

// electionLog keeps what a replica said, to be shown when its election stood still.
type electionLog struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *electionLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *electionLog) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// One to three replicas start at once on a database nobody has migrated yet; every third time whoever decides stops at its
// first answer. Each replica that stays answers its first command, whoever decides. Run with -elections 300, on one
// core beside a busy loop, it says how long the slowest start and, from then, the slowest first answer took.
func TestFirstElections(t *testing.T) {
	if testing.Short() {
		t.Skip("it needs PostgreSQL and some seconds")
	}
	var start, answer time.Duration // the slowest
	for round := range *elections {
		starting, answering := election(t, round, 1+round%3, round%3 == 2)
		if t.Failed() {
			return
		}
		start, answer = max(start, starting), max(answer, answering)
		if round%50 == 49 {
			t.Logf("after %d elections: the slowest start %v, the slowest first answer %v", round+1, start, answer)
		}
	}
	t.Logf("%d elections: the slowest start %v, from then the slowest first answer %v", *elections, start, answer)
}

// election says how long the replicas took to start, and then to answer.
func election(t *testing.T, round, replicas int, stops bool) (starting, answering time.Duration) {
	var logged electionLog
	data, dsn := t.TempDir(), pgtest.New(t)
	began := time.Now()
	running := make([]*replica, replicas)
	ends := make([]func(), replicas)
	var starters sync.WaitGroup
	for i := range replicas {
		starters.Go(func() {
			config, err := loadConfig([]string{
				"DATABASE_URL=" + dsn, "NIGHTSHIFT_LISTEN=127.0.0.1:0", "NIGHTSHIFT_DATA=" + data,
				"NIGHTSHIFT_SECRET_KEY=" + base64.StdEncoding.EncodeToString(make([]byte, 32)),
				"NIGHTSHIFT_BOOTSTRAP_CLIENT_ID=boot", "NIGHTSHIFT_BOOTSTRAP_CLIENT_SECRET=boot-secret-boot-secret-boot-secret",
			}, data)
			if err != nil {
				t.Error(err)
				return
			}
			ctx, stop := context.WithCancel(context.Background())
			log := slog.New(slog.NewTextHandler(&logged, &slog.HandlerOptions{Level: slog.LevelDebug})).With("replica", i)
			r, err := newReplica(ctx, &ground{config: config, log: log, patience: time.Minute})
			if err != nil {
				stop()
				t.Errorf("replica %d: %v", i, err)
				return
			}
			ended := make(chan error, 1)
			go func() { ended <- r.run(ctx) }()
			running[i] = r
			ends[i] = sync.OnceFunc(func() {
				stop()
				select {
				case err := <-ended:
					if err != nil {
						t.Errorf("replica %d ended with %v", i, err)
					}
				case <-time.After(time.Minute):
					t.Errorf("replica %d did not end", i)
					return
				}
				r.close()
			})
		})
	}
	starters.Wait()
	defer func() {
		for _, end := range ends {
			if end != nil {
				go end()
			}
		}
		for _, end := range ends {
			if end != nil {
				end() // waits for it
			}
		}
		if t.Failed() {
			t.Log(logged.String())
		}
	}()
	if t.Failed() {
		return 0, 0
	}
	started := time.Now()
	if stops {
		firstAnswer(t, running[0], 1000)
		for i, r := range running {
			if r.loop.Role().Brain {
				ends[i]()
				running[i] = nil
			}
		}
	}
	var asking sync.WaitGroup
	for i, r := range running {
		if r != nil {
			asking.Go(func() { firstAnswer(t, r, i) })
		}
	}
	asking.Wait()
	answering = time.Since(started)
	if answering > 5*time.Second {
		t.Logf("election %d with %d replicas, stops %v, took %v:\n%s", round, replicas, stops, answering, logged.String())
	}
	return started.Sub(began), answering
}

// firstAnswer makes a tenant of the replica's own. The replica may say that it does not decide yet, for a while.
func firstAnswer(t *testing.T, r *replica, n int) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	c := r.testClient(t, "")
	slug := fmt.Sprintf("acorn-%d", n)
	_, err := c.Persist(ctx, client.Call{
		Method: "POST", Path: "/v1/tenants", Timeout: 35 * time.Second,
		In: map[string]any{"slug": slug, "name": "Acorn", "weight": 1, "timezone": "UTC"},
	})
	if err != nil && !errors.Is(err, context.Canceled) {
		t.Errorf("replica %d was asked in vain: %v", n, err)
	}
}
