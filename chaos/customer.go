package chaos

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"nightshift/workers/client"
)

// probe asks without a token.
var probe = &http.Client{Timeout: 2 * time.Second}

func get(url string) (int, error) {
	answer, err := probe.Get(url)
	if err != nil {
		return 0, err
	}
	defer answer.Body.Close()
	_, err = io.Copy(io.Discard, answer.Body)
	return answer.StatusCode, err
}

// Fate is what a caller knows of a submit.
type Fate int

// The fates. Unknown: no answer came, or one that leaves it open.
const (
	Acked Fate = iota
	Refused
	Unknown
)

// entry is one submit in a customer's journal.
type entry struct {
	key    string
	header bool // told apart by the header Idempotency-Key; else by the field idempotency_key
	text   string
	fate   Fate
	status int
	id     string
}

// Customer submits tasks and keeps a journal of what it was told.
type Customer struct {
	world   *World
	callers []*client.Client
	timeout time.Duration
	more    map[string]any // fields of every task

	next    atomic.Int64
	mu      sync.Mutex
	journal map[string]*entry
	took    []time.Duration
	slowest time.Duration
	codes   map[string]int
}

// customer submits through the given addresses in turn.
func (w *World) customer(who identity, urls ...string) *Customer {
	c := &Customer{world: w, timeout: 10 * time.Second, journal: map[string]*entry{}, codes: map[string]int{}}
	for _, url := range urls {
		c.callers = append(c.callers, w.caller(url, who))
	}
	return c
}

// submit sends one new task; every second one by header.
func (c *Customer) submit(ctx context.Context) *entry {
	n := c.next.Add(1)
	e := &entry{key: fmt.Sprintf("key-%d", n), header: n%2 == 0, text: fmt.Sprintf("Key %d of this night. It fell early. Then came the dawn.", n)}
	c.mu.Lock()
	c.journal[e.key] = e
	c.mu.Unlock()
	c.send(ctx, e, int(n))
	return e
}

func (c *Customer) send(ctx context.Context, e *entry, turn int) {
	in := map[string]any{"type": "text.summarize", "payload": map[string]any{"text": e.text, "sentences": 1}}
	for name, value := range c.more {
		in[name] = value
	}
	headers := map[string]string{}
	if e.header {
		headers["Idempotency-Key"] = e.key
	} else {
		in["idempotency_key"] = e.key
	}
	var made struct {
		ID string `json:"id"`
	}
	began := time.Now()
	status, err := c.callers[turn%len(c.callers)].Do(ctx, client.Call{
		Method: http.MethodPost, Path: "/v1/tasks", In: in, Out: &made, Headers: headers, Timeout: c.timeout,
	})
	took := time.Since(began)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.slowest = max(c.slowest, took)
	e.status = status
	var refusal *client.Refusal
	switch {
	case err == nil:
		e.fate, e.id = Acked, made.ID
		c.took = append(c.took, took)
		c.codes["acked"]++
	case errors.As(err, &refusal) && refusal.Status < 500 && refusal.Code != "idempotency_in_progress":
		e.fate = Refused
		c.codes[refusal.Code]++
	default:
		e.fate = Unknown
		word := "no answer"
		if refusal != nil {
			word = refusal.Code
		}
		c.codes[word]++
	}
}

// flow submits with several hands until the context ends or the count is reached (0: no bound), each hand resting
// between two submits.
func (c *Customer) flow(ctx context.Context, hands, count int, rest time.Duration) (wait func()) {
	var all sync.WaitGroup
	var begun atomic.Int64
	for range hands {
		all.Go(func() {
			for ctx.Err() == nil && (count == 0 || begun.Add(1) <= int64(count)) {
				if e := c.submit(context.WithoutCancel(ctx)); e.fate == Unknown {
					_ = client.Sleep(ctx, 50*time.Millisecond) // as a caller would
				}
				_ = client.Sleep(ctx, rest)
			}
		})
	}
	return all.Wait
}

// resend sends whatever is unclear again, with the same key and body, until everything is known.
func (c *Customer) resend() int {
	c.world.t.Helper()
	unclear := c.with(Unknown)
	for i, e := range unclear {
		until := time.Now().Add(patience)
		for n := 0; e.fate == Unknown && time.Now().Before(until); n++ {
			c.send(context.Background(), e, i+n)
			if e.fate == Unknown {
				time.Sleep(100 * time.Millisecond)
			}
		}
		if e.fate == Unknown {
			c.world.t.Errorf("I4: %s: still unclear after %s, last status %d", e.key, patience, e.status)
		}
	}
	return len(unclear)
}

func (c *Customer) with(f Fate) []*entry {
	c.mu.Lock()
	defer c.mu.Unlock()
	var some []*entry
	for _, e := range c.journal {
		if e.fate == f {
			some = append(some, e)
		}
	}
	slices.SortFunc(some, func(a, b *entry) int { return strings.Compare(a.key, b.key) })
	return some
}

// figures says what the customer was told.
func (c *Customer) figures() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return fmt.Sprintf("%d submits %v, acked p50 %s p99 %s, slowest call %s", len(c.journal), c.codes,
		quantile(c.took, 0.5), quantile(c.took, 0.99), c.slowest.Round(time.Millisecond))
}

func quantile(all []time.Duration, q float64) time.Duration {
	if len(all) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(all))
	return sorted[min(len(sorted)-1, int(q*float64(len(sorted))))].Round(100 * time.Microsecond)
}
