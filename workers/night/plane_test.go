package night

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strconv"
	"testing"
	"time"

	"nightshift/workers"
	"nightshift/workers/run"
	"nightshift/workers/workertest"
)

// plane adds workflows and events to the miniature control plane: enough of
// the public API for a night.
type plane struct {
	*workertest.Server
	front     *httptest.Server
	workflows map[string]*flow
	answers   map[string][]byte // by idempotency key
	bodies    map[string]string
	owner     map[*workertest.Task]*knot
	events    []map[string]any
	posts     int
}

type flow struct {
	id    string
	knots []*knot
}

// knot is a task with what waits for it.
type knot struct {
	flow    *flow
	task    *workertest.Task
	waits   int
	then    []edge
	settled bool
}

type edge struct {
	to *knot
	on string
}

func newPlane(t *testing.T) *plane {
	p := &plane{
		Server: workertest.New(t), workflows: map[string]*flow{}, answers: map[string][]byte{}, bodies: map[string]string{},
		owner: map[*workertest.Task]*knot{},
	}
	p.Changed = p.changed
	inner, err := url.Parse(p.Server.URL)
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/workflows", p.create)
	mux.HandleFunc("GET /v1/workflows/{id}", p.read)
	mux.HandleFunc("GET /v1/events", p.list)
	mux.HandleFunc("GET /v1/tasks/{id}", p.task)
	mux.Handle("/", httputil.NewSingleHostReverseProxy(inner))
	p.front = httptest.NewServer(mux)
	t.Cleanup(p.front.Close)
	return p
}

func (p *plane) create(w http.ResponseWriter, r *http.Request) {
	raw, _ := io.ReadAll(r.Body)
	key := r.Header.Get("Idempotency-Key")
	p.Lock()
	defer p.Unlock()
	p.posts++
	if first, known := p.answers[key]; known {
		if p.bodies[key] != string(raw) {
			w.WriteHeader(http.StatusUnprocessableEntity)
			return
		}
		_, _ = w.Write(first)
		return
	}
	var body workflow
	if err := json.Unmarshal(raw, &body); err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	f := &flow{id: fmt.Sprintf("wf_%d", len(p.workflows))}
	byKey, ids := map[string]*knot{}, map[string]string{}
	for _, n := range body.Tasks {
		k := &knot{flow: f, waits: len(n.DependsOn), task: p.Add(n.Type, n.Payload, "pending")}
		for _, d := range n.DependsOn {
			byKey[d.Key].then = append(byKey[d.Key].then, edge{k, d.On})
		}
		byKey[n.Key], ids[n.Key], p.owner[k.task] = k, k.task.ID, k
		f.knots = append(f.knots, k)
	}
	for _, k := range f.knots {
		if k.waits == 0 {
			p.Free(k.task)
		}
	}
	p.workflows[f.id] = f
	answer, _ := json.Marshal(submitted{f.id, ids})
	p.answers[key], p.bodies[key] = answer, string(raw)
	w.WriteHeader(http.StatusCreated)
	_, _ = w.Write(answer)
}

// changed fires edges when a task has ended; under Lock.
func (p *plane) changed(t *workertest.Task) {
	k := p.owner[t]
	name := map[string]string{"running": "task.started", "succeeded": "task.succeeded", "dead_letter": "task.dead_lettered"}[t.State]
	if k == nil || name == "" {
		return
	}
	p.events = append(p.events, map[string]any{
		"id": strconv.Itoa(len(p.events)+1) + ".0", "name": name, "task_id": t.ID, "at": time.Now().UTC(), "pool": "cpu",
	})
	if t.State == "running" || k.settled {
		return
	}
	k.settled = true
	for _, e := range k.then {
		if t.State == "dead_letter" && e.on != "finished" {
			continue
		}
		if e.to.waits--; e.to.waits == 0 {
			p.Free(e.to.task)
		}
	}
}

func (p *plane) read(w http.ResponseWriter, r *http.Request) {
	p.Lock()
	defer p.Unlock()
	f := p.workflows[r.PathValue("id")]
	if f == nil {
		w.WriteHeader(http.StatusNotFound)
		_, _ = w.Write([]byte(`{"code":"not_found","status":404}`))
		return
	}
	counts := map[string]int{}
	for _, k := range f.knots {
		counts[k.task.State]++
	}
	state := "running"
	if counts["ready"]+counts["running"] == 0 {
		state = "succeeded"
		if counts["dead_letter"] > 0 {
			state = "failed"
		}
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"state": state, "counts": counts})
}

func (p *plane) list(w http.ResponseWriter, r *http.Request) {
	p.Lock()
	defer p.Unlock()
	limit, _ := strconv.Atoi(r.URL.Query().Get("limit"))
	after, _ := strconv.ParseFloat(r.URL.Query().Get("after"), 64)
	page := p.events[min(int(after), len(p.events)):]
	page = page[:min(limit, len(page))]
	_ = json.NewEncoder(w).Encode(map[string]any{"data": page, "next_cursor": nil})
}

func (p *plane) task(w http.ResponseWriter, r *http.Request) {
	p.Lock()
	defer p.Unlock()
	for t := range p.owner {
		if t.ID == r.PathValue("id") {
			var result json.RawMessage
			if len(t.Outcomes) > 0 {
				result = t.Outcomes[0].Result
			}
			_ = json.NewEncoder(w).Encode(map[string]any{"state": t.State, "result": result})
			return
		}
	}
	w.WriteHeader(http.StatusNotFound)
}

// crew runs workers with all task types inside the test.
func (p *plane) crew(t *testing.T, data string, documents ...string) {
	t.Helper()
	w, err := workers.New(workers.Options{
		Server: p.front.URL, ClientID: workertest.ClientID, ClientSecret: workertest.ClientSecret, Name: "crew", Slots: 4,
		KeepSignals: true, Logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := run.Register(w, run.Options{Data: data, Documents: slices.Concat(documents, []string{data})}); err != nil {
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
}
