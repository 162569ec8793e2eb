package web_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"nightshift/handlers"
	"nightshift/handlers/api"
	"nightshift/handlers/worker"
	"nightshift/models/postgres"
	"nightshift/models/postgres/pgtest"
	"nightshift/scheduler/loop"
	"nightshift/scheduler/relay"
	"nightshift/web"
)

// stage is a whole replica over a database of its own: store, loop, front and listener.
type stage struct {
	t      *testing.T
	deps   *handlers.Deps
	server *web.Server
	url    string
	log    *locked
}

const (
	rootID     = "root"
	rootSecret = "a-bootstrap-secret-of-some-length"
	adminEmail = "operator@example.com"
	adminWord  = "correct horse battery staple"
)

var secretKey = bytes.Repeat([]byte{7}, 32)

func newStage(t *testing.T) *stage {
	t.Helper()
	s := &stage{t: t, log: &locked{}}
	logger := slog.New(slog.NewJSONHandler(s.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	ctx := t.Context()
	db := pgtest.Opened(t)
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
	s.deps, err = handlers.Open(ctx, handlers.Settings{
		DB: db, Door: brain, SecretKey: secretKey, Version: "test", Logger: logger,
		BootstrapID: rootID, BootstrapSecret: rootSecret, AdminEmail: adminEmail, AdminPassword: adminWord,
	})
	s.must(err)
	events := newRelay(db, brain.Subscribe(running))
	followed := make(chan struct{})
	go func() {
		defer close(followed)
		_ = events.Run(running)
	}()
	s.server, err = web.New(web.Options{Deps: s.deps, Relay: events, Loop: brain, Routes: append(allRoutes(db), troubleRoutes()...), Address: s.url, PID: 1, Pages: testPages, Trouble: testTrouble})
	s.must(err)
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = s.server.Serve(listener)
	}()
	t.Cleanup(func() {
		s.must(s.server.Shutdown(time.Minute))
		select {
		case <-served:
		case <-time.After(time.Minute):
			t.Error("the listener's loop did not end")
		}
		stop()
		<-ended
		<-followed
		writer.Close()
	})
	s.await("a brain", func() bool { return brain.Role().Brain })
	return s
}

// allRoutes is the route table of a replica.
func allRoutes(db *postgres.DB) []handlers.Route {
	return slices.Concat(api.PlatformRoutes(), api.NewWork(db).Routes(), worker.NewFloor(db).Routes())
}

func newRelay(db *postgres.DB, wakes <-chan int64) *relay.Relay {
	return relay.New(relay.Options{
		Read: func(ctx context.Context, envs []int32, after int64, limit int) ([]relay.Packed, error) {
			rows, err := db.Events(ctx, envs, after, limit)
			packed := make([]relay.Packed, len(rows))
			for i, row := range rows {
				packed[i] = relay.Packed{Batch: row.Batch, Env: row.Env, Items: row.Items}
			}
			return packed, err
		},
		Oldest: db.OldestEvents, Tail: db.LastBatch, Logger: slog.New(slog.DiscardHandler), Wakes: []<-chan int64{wakes},
	})
}

func (s *stage) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

// await asks again until it is so, and fails after a minute.
func (s *stage) await(what string, so func() bool) {
	s.t.Helper()
	for end := time.Now().Add(time.Minute); !so(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			s.t.Fatalf("waited in vain for %s", what)
		}
	}
}

func (s *stage) logged() string { return s.log.String() }

// reply is an answer as a client sees it.
type reply struct {
	status int
	header http.Header
	body   map[string]any
	text   string
}

func (r reply) code() string { return r.str("code") }

func (r reply) str(name string) string {
	text, _ := r.body[name].(string)
	return text
}

func (r reply) rows() []map[string]any {
	list, _ := r.body["data"].([]any)
	out := make([]map[string]any, len(list))
	for i := range list {
		out[i], _ = list[i].(map[string]any)
	}
	return out
}

// call sends a request. Body is a text or something to write as JSON; headers come in pairs.
func (s *stage) call(method, path string, body any, headers ...string) reply {
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
	for i := 0; i+1 < len(headers); i += 2 {
		if request.Header.Del(headers[i]); headers[i+1] != "" {
			request.Header.Set(headers[i], headers[i+1])
		}
	}
	return s.send(request)
}

func (s *stage) send(request *http.Request) reply {
	s.t.Helper()
	client := http.Client{Timeout: time.Minute, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	response, err := client.Do(request)
	s.must(err)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	s.must(err)
	r := reply{status: response.StatusCode, header: response.Header, text: string(text)}
	if strings.HasPrefix(response.Header.Get("Content-Type"), "application/") {
		_ = json.Unmarshal(text, &r.body)
	}
	if r.status >= 400 && strings.HasPrefix(request.URL.Path, "/v1/") && request.Method != http.MethodHead {
		s.isProblem(r)
	}
	return r
}

// isProblem holds what every refusal has.
func (s *stage) isProblem(r reply) {
	s.t.Helper()
	if got := r.header.Get("Content-Type"); got != "application/problem+json" {
		s.t.Errorf("%d came as %q: %s", r.status, got, r.text)
	}
	for _, name := range []string{"type", "title", "status", "detail", "instance", "code", "request_id"} {
		if _, ok := r.body[name]; !ok {
			s.t.Errorf("a problem without %q: %s", name, r.text)
		}
	}
	if r.str("request_id") != r.header.Get("X-Request-Id") {
		s.t.Errorf("the problem's request id %q is not the header's %q", r.str("request_id"), r.header.Get("X-Request-Id"))
	}
	if (r.status == 429 || r.status == 503) && r.header.Get("Retry-After") == "" {
		s.t.Errorf("%d without Retry-After", r.status)
	}
}

// want fails unless the answer has the status and, for refusals, the code.
func (s *stage) want(r reply, status int, code string) reply {
	s.t.Helper()
	if r.status != status || r.code() != code {
		s.t.Fatalf("got %d %q, want %d %q: %s", r.status, r.code(), status, code, r.text)
	}
	return r
}

// token signs a client in and answers its Authorization header's value.
func (s *stage) token(id, secret string) string {
	s.t.Helper()
	form := url.Values{"grant_type": {"client_credentials"}, "client_id": {id}, "client_secret": {secret}}
	r := s.want(s.call("POST", "/v1/auth/token", form.Encode(), "Content-Type", "application/x-www-form-urlencoded"), 200, "")
	return "Bearer " + r.str("access_token")
}

func (s *stage) root() string { return s.token(rootID, rootSecret) }

// tenant makes a tenant and a key of it with the scopes, and answers the tenant and the key's header value.
func (s *stage) tenant(root, slug string, scopes ...string) (tenant, key reply, token string) {
	s.t.Helper()
	tenant = s.want(s.call("POST", "/v1/tenants", map[string]any{"name": "Tenant " + slug, "slug": slug}, "Authorization", root), 201, "")
	key = s.want(s.call("POST", "/v1/api-keys", map[string]any{"name": "of " + slug, "scopes": scopes}, "Authorization", root, "Nightshift-Tenant", slug), 201, "")
	return tenant, key, s.token(key.str("client_id"), key.str("client_secret"))
}
