package chaos

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"nightshift/workers/client"
	"nightshift/workers/protocol"
)

// token is a bearer token, for calls that no client would make.
func (w *World) token(t testing.TB, url string, who identity) string {
	t.Helper()
	body, err := json.Marshal(protocol.TokenRequest{GrantType: "client_credentials", ClientID: who.ClientID, ClientSecret: who.ClientSecret})
	if err != nil {
		t.Fatal(err)
	}
	answer, err := (&http.Client{Timeout: patience}).Post(url+"/v1/auth/token", "application/json", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	var got protocol.TokenAnswer
	if err := json.NewDecoder(answer.Body).Decode(&got); err != nil {
		t.Fatal(err)
	}
	return got.AccessToken
}

// One poisoned body among five hundred submits that travel together hurts its sender alone.
func TestPoisonedSubmits(t *testing.T) {
	w := NewWorld(t, 2)
	w.puller(64, 15, 0, w.fronts()...)
	brain, _ := w.brain()
	urls := []string{brain.URL, w.other(brain).URL}
	token := w.token(t, brain.URL, w.tenant)
	const all = 500
	poison := map[int]string{
		17:  `{"type":"text.summarize","payload":{"text":"a \u0000 b"}}`,
		133: `{"type":"text.summarize","priority":99999999999999999999,"payload":{"text":"overflow"}}`,
		251: `{"type":"text.summarize","expires_in_seconds":1e300,"payload":{"text":"overflow"}}`,
		252: "{\"type\":\"text.summarize\",\"payload\":{\"text\":\"\xff\xfe\"}}",
		377: `{"type":"text.summarize","idempotency_key":"k\u0000","payload":{"text":"key"}}`,
		499: `{"type":"text.summarize","labels":{"a":"\u0000"},"payload":{"text":"label"}}`,
	}
	var ends sync.WaitGroup
	var made, refused atomic.Int32
	caller := &http.Client{Timeout: patience, Transport: &http.Transport{MaxIdleConnsPerHost: 64}}
	gate := make(chan struct{}, 64)
	for i := range all {
		gate <- struct{}{}
		ends.Go(func() {
			defer func() { <-gate }()
			body, bad := poison[i]
			if !bad {
				body = fmt.Sprintf(`{"type":"text.summarize","payload":{"text":"Good %d. It is good."}}`, i)
			}
			request, _ := http.NewRequest(http.MethodPost, urls[i%2]+"/v1/tasks", bytes.NewReader([]byte(body))) // cannot fail
			request.Header.Set("Authorization", "Bearer "+token)
			request.Header.Set("Content-Type", "application/json")
			answer, err := caller.Do(request)
			if err != nil {
				t.Error(err)
				return
			}
			text, _ := io.ReadAll(answer.Body) // shown where the status is wrong
			answer.Body.Close()
			switch {
			case !bad && answer.StatusCode == http.StatusCreated:
				made.Add(1)
			case bad && answer.StatusCode >= 400 && answer.StatusCode < 500:
				refused.Add(1)
			default:
				t.Errorf("submit %d (%.60q) was answered %d: %s", i, body, answer.StatusCode, text)
			}
		})
	}
	ends.Wait()
	t.Logf("of %d submits %d were made and %d refused with 4xx", all, made.Load(), refused.Load())
	w.Finish(t)
	if n := w.DB.count(t, `SELECT count(*) FROM tasks WHERE state = 8`); n != all-len(poison) {
		t.Errorf("%d of %d succeeded", n, all-len(poison))
	}
}

// Once a pause is acknowledged nothing starts any more, whoever is hungry; a resume lets it go on.
func TestNoStartAfterAnAcknowledgedPause(t *testing.T) {
	w := NewWorld(t, 2)
	c := w.customer(w.tenant, w.fronts()...)
	c.flow(context.Background(), 8, 600, 0)()
	for range 4 {
		w.puller(4, 15, 30*time.Millisecond, w.fronts()...)
	}
	const starts = `SELECT coalesce(sum(attempt), 0) FROM tasks`
	w.eventually(patience, "work flows", func() bool { return w.DB.count(t, starts) > 50 })
	operator := w.caller(w.Replicas[w.Rng.IntN(2)].URL, w.tenant)
	for round := range 3 {
		w.must(operator, "POST", "/v1/lanes/batch/pause", map[string]any{"reason": "a test"}, nil)
		before := w.DB.count(t, starts)
		time.Sleep(1500 * time.Millisecond) // hungry workers ask all the time
		if after := w.DB.count(t, starts); after != before {
			t.Errorf("round %d: %d starts after the pause was acknowledged", round, after-before)
		}
		w.must(operator, "POST", "/v1/lanes/batch/resume", map[string]any{}, nil)
		w.eventually(patience, "work flows again", func() bool { return w.DB.count(t, starts) > before+20 })
		t.Logf("round %d: paused after %d starts, none more until the resume", round, before)
	}
	w.Finish(t, c)
}

// One customer floods: it hears 2xx, 429 and 503 alone, and a small one beside it is served in time.
func TestOverload(t *testing.T) {
	w := NewWorld(t, 1)
	front := w.Replicas[0].URL
	w.must(w.caller(front, w.platform), "POST", "/v1/tenants", map[string]any{"name": "Birch Books", "slug": "birch", "weight": 1}, nil)
	small := w.customer(w.key("birch", "tasks:read", "tasks:write"), front)
	small.next.Add(1_000_000)
	for range 2 {
		w.puller(8, 15, 20*time.Millisecond, front)
	}
	quiet := w.latencies(t, small, 4*time.Second)
	ctx, stop := context.WithCancel(context.Background())
	flood := w.customer(w.tenant, front)
	wait := flood.flow(ctx, 32, 0, 0)
	w.eventually(patience, "the flood has a backlog", func() bool { return len(flood.with(Acked)) > 1000 })
	flooded := w.DB.count(t, `SELECT max(created_at) FROM tasks`)
	busy := w.latencies(t, small, 8*time.Second)
	stop()
	wait()
	for _, c := range []*Customer{flood, small} {
		for code := range c.codes {
			switch code {
			case "acked", "queue_full", "rate_limited", "overloaded", "unavailable":
			default:
				t.Errorf("T12: answered %q", code)
			}
		}
		for _, e := range c.with(Refused) {
			if e.status != http.StatusTooManyRequests {
				t.Errorf("T12: refused with %d", e.status)
				break
			}
		}
	}
	p95 := func(all []time.Duration) time.Duration { return quantile(all, 0.95) }
	t.Logf("submit to start of the small customer: quiet p50 %s p95 %s, in the flood p50 %s p95 %s", quantile(quiet, 0.5), p95(quiet), quantile(busy, 0.5), p95(busy))
	// A start waits for a slot: one task of the flood (20 ms) and the answer of its worker come before it at most. On a machine
	// that is slow just then it may wait for longer, but not behind the backlog: most of its tasks overtake some of the flood.
	overtaking := w.DB.count(t, `SELECT count(*) FROM tasks s WHERE s.env = (SELECT env FROM tasks ORDER BY created_at LIMIT 1) AND s.created_at >= $1
		AND EXISTS (SELECT 1 FROM tasks f WHERE f.env <> s.env AND f.created_at < s.created_at AND (coalesce(f.started_at, 0) = 0 OR f.started_at > s.started_at))`, flooded)
	t.Logf("%d of %d tasks of the small customer overtook some of the flood", overtaking, len(busy))
	if most := 2*p95(quiet) + 500*time.Millisecond; p95(busy) > most && overtaking < len(busy)/2 {
		t.Errorf("T12: the small customer's p95 is %s in the flood, more than %s, and %d of its %d tasks were before any of the flood", p95(busy), most, overtaking, len(busy))
	}
	for range 2 {
		w.puller(200, 15, 0, front)
	}
	w.Finish(t, flood, small)
}

// latencies submits one task after the other for a while and reads when they started, by the database's clock.
func (w *World) latencies(t testing.TB, c *Customer, span time.Duration) []time.Duration {
	t.Helper()
	var all []time.Duration
	for until := time.Now().Add(span); time.Now().Before(until); {
		e := c.submit(context.Background())
		if e.fate != Acked {
			continue
		}
		var seen struct {
			CreatedAt time.Time  `json:"created_at"`
			StartedAt *time.Time `json:"started_at"`
		}
		for end := time.Now().Add(patience); seen.StartedAt == nil && time.Now().Before(end); {
			if _, err := c.callers[0].Do(context.Background(), client.Call{Method: "GET", Path: "/v1/tasks/" + e.id + "/wait?timeout_seconds=20", Out: &seen}); err != nil {
				t.Error(err)
				break
			}
		}
		if seen.StartedAt == nil {
			t.Errorf("T12: %s has not started within %s", e.id, patience)
			continue
		}
		all = append(all, seen.StartedAt.Sub(seen.CreatedAt))
	}
	return all
}
