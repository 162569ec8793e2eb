package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"time"

	"nightshift/models"
	"nightshift/scheduler/sim"
	"nightshift/scheduler/sim/scenario"
	"nightshift/workers/client"
)

// exporter reads what came to a server through its public API, a page at a time. What it keeps of a task is when it came
// and how long it ran.
type exporter struct {
	from, to    time.Time
	left, most  int
	environment string
	open        func(headers map[string]string) (*source, error)
	groups      map[string]*group
	order       []*group
}

// group are the tasks that differ in nothing but when they came and how long they ran.
type group struct {
	sim.Arrival
	failed, attempts int64
	tokens           int64 // that all of them ask for
	unknown          []int // items that have not ended: their run time is the mean of the others
}

// taskRow is a row of the list of tasks, as far as it is used.
type taskRow struct {
	Type      string `json:"type"`
	Lane      string `json:"lane"`
	Priority  int16  `json:"priority"`
	State     string `json:"state"`
	Resources struct {
		CPU      float64 `json:"cpu"`
		MemoryMB int64   `json:"memory_mb"`
		DiskMB   int64   `json:"disk_mb"`
		GPU      int32   `json:"gpu"`
		VRAMMB   int64   `json:"vram_mb"`
		Tokens   int64   `json:"tokens"`
	} `json:"resources"`
	Model struct {
		Chosen *string `json:"chosen"`
	} `json:"model"`
	Timeout struct {
		Hard *float64 `json:"hard_seconds"`
	} `json:"timeout"`
	Permissions []string          `json:"permissions"`
	Selector    map[string]string `json:"worker_selector"`
	Concurrency []struct {
		Key   string `json:"key"`
		Limit int32  `json:"limit"`
	} `json:"concurrency"`
	RateKeys    []string   `json:"rate_keys"`
	Ordered     bool       `json:"ordered"`
	Attempt     int32      `json:"attempt"`
	Used        int64      `json:"attempts_used"`
	MaxAttempts int32      `json:"max_attempts"`
	CreatedAt   time.Time  `json:"created_at"`
	ReadyAt     *time.Time `json:"ready_at"`
	StartedAt   *time.Time `json:"started_at"`
	FinishedAt  *time.Time `json:"finished_at"`
	Deadline    *time.Time `json:"deadline"`
}

// recording reads everything; slugs narrow what a platform key sees.
func (e *exporter) recording(ctx context.Context, slugs []string) (*scenario.Recording, error) {
	r := &scenario.Recording{
		About: fmt.Sprintf("What came from %s to %s. Live through it: nightshift simulate FILE --what-if tenant.NAME.weight=N", e.from.UTC().Format(time.RFC3339), e.to.UTC().Format(time.RFC3339)),
		Span:  e.to.Sub(e.from),
	}
	c, err := e.open(nil)
	if err != nil {
		return nil, usageError{err}
	}
	tenants, whole, err := e.tenants(ctx, c, slugs)
	if err != nil {
		return nil, err
	}
	for i := range tenants {
		t := &tenants[i]
		headers := map[string]string{"Nightshift-Environment": e.environment}
		if whole {
			headers["Nightshift-Tenant"] = t.Name
		}
		of, err := e.open(headers)
		if err != nil {
			return nil, err
		}
		if err := e.lanes(ctx, of, t.Name, r); err != nil {
			return nil, err
		}
		if err := e.limits(ctx, of, t); err != nil {
			return nil, err
		}
		if err := e.tasks(ctx, of, t.Name); err != nil {
			return nil, fmt.Errorf("the tasks of %s: %w", t.Name, err)
		}
	}
	r.Tenants = tenants
	if err := e.kinds(ctx, c, r); err != nil {
		return nil, err
	}
	if err := e.workers(ctx, c, r); err != nil {
		return nil, err
	}
	for n, g := range e.order {
		r.Arrivals = append(r.Arrivals, g.settled(n))
	}
	switch {
	case len(r.Arrivals) == 0:
		return nil, fmt.Errorf("no task of these tenants was created in that span in the environment %s", e.environment)
	case len(r.Workers) == 0:
		return nil, fmt.Errorf("the server knows no worker: a scenario needs some")
	}
	return r, nil
}

func get(ctx context.Context, c *source, path string, out any) error {
	asks, done := context.WithTimeout(ctx, c.patience)
	defer done()
	_, err := c.Persist(asks, client.Call{Method: http.MethodGet, Path: path, Out: out, Timeout: 30 * time.Second})
	if err != nil && ctx.Err() == nil && asks.Err() != nil {
		return fmt.Errorf("no answer within %s: %w", c.patience, err)
	}
	return err
}

// pages reads a list from its beginning to its end.
func pages[T any](ctx context.Context, c *source, path string, query url.Values, each func(T) error) error {
	if query == nil {
		query = url.Values{}
	}
	query.Set("limit", "500")
	for {
		var page struct {
			Data []T     `json:"data"`
			Next *string `json:"next_cursor"`
		}
		if err := get(ctx, c, path+"?"+query.Encode(), &page); err != nil {
			return err
		}
		for _, row := range page.Data {
			if err := each(row); err != nil {
				return err
			}
		}
		if page.Next == nil {
			return nil
		}
		query.Set("cursor", *page.Next)
	}
}

func (e *exporter) tasks(ctx context.Context, c *source, tenant string) error {
	query := url.Values{"created_after": {e.from.Format(time.RFC3339Nano)}, "created_before": {e.to.Format(time.RFC3339Nano)}, "order": {"asc"}}
	return pages(ctx, c, "/v1/tasks", query, func(t taskRow) error {
		over := t.State == "cancelled" || t.State == "expired" || t.State == "skipped"
		if over && t.StartedAt == nil {
			return nil // it never asked for a slot, or left before it had one
		}
		if e.left--; e.left < 0 {
			return fmt.Errorf("more than %d tasks came in that span: take a shorter one, or raise --most", e.most)
		}
		e.group(tenant, &t).add(e.from, &t)
		return nil
	})
}

// group finds or makes the group of a task.
func (e *exporter) group(tenant string, t *taskRow) *group {
	a := sim.Arrival{
		Tenant: tenant, Lane: t.Lane, Priority: t.Priority, MaxAttempts: t.MaxAttempts,
		Class: models.Class{
			Type: t.Type, CPUMilli: int64(t.Resources.CPU * 1000), MemoryMB: t.Resources.MemoryMB, DiskMB: t.Resources.DiskMB, GPU: t.Resources.GPU, VRAMMB: t.Resources.VRAMMB,
			Selector: t.Selector, Permissions: t.Permissions, Tokens: t.Resources.Tokens > 0,
		},
		RateKeys: t.RateKeys, Ordered: t.Ordered,
	}
	if t.Model.Chosen != nil {
		a.Class.Model = *t.Model.Chosen
	}
	if t.Timeout.Hard != nil {
		a.Hard = time.Duration(*t.Timeout.Hard * float64(time.Second))
	}
	if t.Deadline != nil {
		a.Deadline = max(t.Deadline.Sub(t.came()).Round(time.Second), time.Second)
	}
	for i, k := range t.Concurrency {
		if i == 0 {
			a.LimitKey, a.KeyLimit = k.Key, k.Limit
			continue
		}
		a.Concurrency = append(a.Concurrency, models.TaskKey{Name: k.Key, Limit: k.Limit})
	}
	like := quotedGroup(&a)
	g := e.groups[like]
	if g == nil {
		g = &group{Arrival: a}
		e.groups[like] = g
		e.order = append(e.order, g)
	}
	return g
}

func quotedGroup(a *sim.Arrival) string {
	text, _ := json.Marshal(a) // it holds nothing that can't be written
	return string(text)
}

// came is when nothing but capacity was missing; of one that still waits for something, when it was created.
func (t *taskRow) came() time.Time {
	if t.ReadyAt != nil {
		return *t.ReadyAt
	}
	return t.CreatedAt
}

func (g *group) add(from time.Time, t *taskRow) {
	item := sim.Item{At: max(t.came().Sub(from), 0)}
	if t.StartedAt != nil && t.FinishedAt != nil {
		item.Run = t.FinishedAt.Sub(*t.StartedAt)
	} else {
		g.unknown = append(g.unknown, len(g.Items))
	}
	g.Items = append(g.Items, item)
	g.tokens += t.Resources.Tokens
	g.attempts += t.Used
	if g.failed += t.Used; t.State == "succeeded" {
		g.failed--
	}
}

// settled is the group as an arrival with a name of its own.
func (g *group) settled(n int) sim.Arrival {
	total, known := time.Duration(0), len(g.Items)-len(g.unknown)
	for i := range g.Items {
		total += g.Items[i].Run
	}
	mean := time.Second
	if known > 0 {
		mean = total / time.Duration(known)
	}
	for _, i := range g.unknown {
		g.Items[i].Run = mean
	}
	slices.SortStableFunc(g.Items, func(a, b sim.Item) int { return cmp.Compare(a.At, b.At) })
	g.Name, g.Tokens = fmt.Sprintf("%s-%d", g.Tenant, n+1), g.tokens/int64(len(g.Items))
	if g.attempts > 0 {
		g.FailPercent = int(max(0, g.failed) * 100 / g.attempts)
	}
	return g.Arrival
}
