package api_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"nightshift/handlers"
	"nightshift/handlers/api"
	"nightshift/handlers/worker"
	"nightshift/models/postgres"
	"nightshift/models/postgres/pgtest"
	"nightshift/scheduler/loop"
	"nightshift/web"
)

// stage is a whole replica over a database of its own, with two tenants.
type stage struct {
	t          *testing.T
	db         *postgres.DB
	url        string
	root       string
	acme, blue string // tokens of two tenants, with tasks and workers
	stopBrain  func() // nobody decides from then on
}

const rootSecret = "a-bootstrap-secret-of-some-length"

func newStage(t *testing.T) *stage {
	t.Helper()
	s := &stage{t: t}
	ctx := t.Context()
	db := pgtest.Opened(t)
	s.db = db
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	s.must(err)
	s.url = "http://" + listener.Addr().String()
	writer := db.Writer()
	brain := loop.New(writer, loop.Options{Address: s.url, Logger: slog.New(slog.DiscardHandler)})
	running, stop := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = brain.Run(running)
	}()
	var logged bytes.Buffer
	deps, err := handlers.Open(ctx, handlers.Settings{
		DB: db, Door: brain, SecretKey: bytes.Repeat([]byte{7}, 32), Version: "test",
		Logger: slog.New(slog.NewTextHandler(&logged, nil)), BootstrapID: "root", BootstrapSecret: rootSecret,
	})
	s.must(err)
	routes := append(append(api.PlatformRoutes(), api.NewWork(db).Routes()...), worker.NewFloor(db).Routes()...)
	server, err := web.New(web.Options{Deps: deps, Routes: routes, Address: s.url, PID: 1})
	s.must(err)
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = server.Serve(listener)
	}()
	t.Cleanup(func() {
		s.must(server.Shutdown(time.Minute))
		<-served
		stop()
		<-ended
		writer.Close()
		if t.Failed() {
			t.Log(logged.String())
		}
	})
	s.stopBrain = func() { stop(); <-ended }
	s.await("a brain", func() bool { return brain.Role().Brain })
	s.root = s.token("root", rootSecret)
	s.acme, s.blue = s.tenant("acme"), s.tenant("blue")
	return s
}

func (s *stage) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

func (s *stage) await(what string, so func() bool) {
	s.t.Helper()
	for end := time.Now().Add(time.Minute); !so(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			s.t.Fatalf("waited in vain for %s", what)
		}
	}
}

func (s *stage) token(id, secret string) string {
	s.t.Helper()
	r := s.call("POST", "/v1/auth/token", "", map[string]any{"grant_type": "client_credentials", "client_id": id, "client_secret": secret})
	return "Bearer " + s.want(r, 200, "").str("access_token")
}

func (s *stage) tenant(slug string) string {
	s.t.Helper()
	s.want(s.call("POST", "/v1/tenants", s.root, map[string]any{"name": slug, "slug": slug}), 201, "")
	scopes := []string{"tasks:read", "tasks:write", "admin:read", "admin:write", "workers:register", "usage:read"}
	key := s.want(s.call("POST", "/v1/api-keys", s.root, map[string]any{"name": slug, "scopes": scopes}, "Nightshift-Tenant", slug), 201, "")
	return s.token(key.str("client_id"), key.str("client_secret"))
}

// reply is an answer as a client sees it.
type reply struct {
	status int
	header http.Header
	body   map[string]any
	text   string
}

func (r reply) str(name string) string { text, _ := r.body[name].(string); return text }
func (r reply) code() string           { return r.str("code") }
func (r reply) num(name string) float64 {
	n, _ := r.body[name].(float64)
	return n
}

func (r reply) rows(name string) []reply {
	list, _ := r.body[name].([]any)
	out := make([]reply, len(list))
	for i := range list {
		out[i].body, _ = list[i].(map[string]any)
	}
	return out
}

func (r reply) at(name string) reply {
	inner, _ := r.body[name].(map[string]any)
	return reply{body: inner}
}

// caller gives up what hangs.
var caller = &http.Client{Timeout: time.Minute}

// call sends a request as the holder of a token; headers come in pairs.
func (s *stage) call(method, path, token string, body any, headers ...string) reply {
	s.t.Helper()
	var reader io.Reader
	switch b := body.(type) {
	case nil:
	case string:
		reader = strings.NewReader(b)
	default:
		text, err := json.Marshal(b)
		s.must(err)
		reader = bytes.NewReader(text)
	}
	request, err := http.NewRequestWithContext(s.t.Context(), method, s.url+path, reader)
	s.must(err)
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	if token != "" {
		request.Header.Set("Authorization", token)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	response, err := caller.Do(request)
	s.must(err)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	s.must(err)
	r := reply{status: response.StatusCode, header: response.Header, text: string(text)}
	if len(text) > 0 {
		s.must(json.Unmarshal(text, &r.body))
	}
	return r
}

// want fails unless the answer has the status and, for refusals, the code.
func (s *stage) want(r reply, status int, code string) reply {
	s.t.Helper()
	if r.status != status || r.code() != code {
		s.t.Fatalf("got %d %q, want %d %q: %s", r.status, r.code(), status, code, r.text)
	}
	return r
}

// refused wants a 422 that names a place.
func (s *stage) refused(r reply, location string) {
	s.t.Helper()
	s.want(r, 422, r.code())
	if errors := r.rows("errors"); len(errors) == 0 || errors[0].str("location") != location {
		s.t.Errorf("want a refusal at %s: %s", location, r.text)
	}
}

// crew is a registered worker.
type crew struct {
	s           *stage
	token       string
	id, session string
}

func (s *stage) register(token string, with map[string]any) crew {
	s.t.Helper()
	in := map[string]any{"name": "w", "instance_id": "w1", "slots": 1000}
	for k, v := range with {
		in[k] = v
	}
	r := s.want(s.call("POST", "/v1/workers", token, in), 201, "")
	return crew{s, token, r.str("worker_id"), r.str("session")}
}

func (w crew) call(what string, body any) reply {
	w.s.t.Helper()
	return w.s.call("POST", "/v1/workers/"+w.id+"/"+what, w.token, body, "Nightshift-Session", w.session)
}

// claim leases up to most tasks, waiting up to wait seconds. Who waits for seconds knows that there is something, however slow
// the machine: it is asked for again, for a minute.
func (w crew) claim(most int, wait float64) (tasks []reply) {
	w.s.t.Helper()
	ask := func() bool {
		tasks = w.s.want(w.call("claim", map[string]any{"max_tasks": most, "wait_seconds": wait}), 200, "").rows("tasks")
		return len(tasks) > 0 || wait < 5
	}
	w.s.await("a task to claim", ask)
	return tasks
}

// report sends results of leases and answers the rows.
func (w crew) report(results ...map[string]any) []reply {
	w.s.t.Helper()
	return w.s.want(w.call("results", map[string]any{"results": results}), 200, "").rows("results")
}

func done(lease reply, result any) map[string]any {
	return map[string]any{"lease_token": lease.str("lease_token"), "status": "succeeded", "result": result}
}

func failed(lease reply, class string) map[string]any {
	return map[string]any{"lease_token": lease.str("lease_token"), "status": "failed", "error": map[string]any{"class": class, "message": "it broke"}}
}

func (s *stage) submit(token string, task map[string]any) reply {
	s.t.Helper()
	return s.want(s.call("POST", "/v1/tasks", token, task), 201, "")
}

func (s *stage) task(token, id string) reply {
	s.t.Helper()
	return s.want(s.call("GET", "/v1/tasks/"+id, token, nil), 200, "")
}
