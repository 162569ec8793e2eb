package acceptance

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"nightshift/handlers"
	"nightshift/handlers/api"
	"nightshift/handlers/worker"
	"nightshift/models/postgres/pgtest"
	"nightshift/scheduler/loop"
	"nightshift/web"
)

// door is a replica as callers see it: an address and the platform's token.
type door struct {
	t    *testing.T
	url  string
	root string
}

const rootSecret = "a-bootstrap-secret-of-some-length"

// open starts a replica over a database of its own.
func open(t *testing.T) *door {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	quiet := slog.New(slog.DiscardHandler)
	db := pgtest.Opened(t)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(err)
	d := &door{t: t, url: "http://" + listener.Addr().String()}
	writer := db.Writer()
	brain := loop.New(writer, loop.Options{Address: d.url, Logger: quiet})
	running, stop := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = brain.Run(running)
	}()
	deps, err := handlers.Open(t.Context(), handlers.Settings{
		DB: db, Door: brain, SecretKey: bytes.Repeat([]byte{7}, 32), Version: "test", Logger: quiet,
		BootstrapID: "root", BootstrapSecret: rootSecret,
	})
	must(err)
	front, err := web.New(web.Options{
		Deps: deps, Loop: brain, Address: d.url, PID: 1,
		Routes: slices.Concat(api.PlatformRoutes(), api.NewWork(db).Routes(), worker.NewFloor(db).Routes()),
	})
	must(err)
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = front.Serve(listener)
	}()
	t.Cleanup(func() {
		must(front.Shutdown(time.Minute))
		<-served
		stop()
		<-ended
		writer.Close()
	})
	d.await("a brain", func() bool { return brain.Role().Brain })
	d.root = d.token("root", rootSecret)
	return d
}

// await asks again until it is so, and fails after a minute.
func (d *door) await(what string, so func() bool) {
	d.t.Helper()
	for end := time.Now().Add(time.Minute); !so(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			d.t.Fatalf("waited in vain for %s", what)
		}
	}
}

// reply is an answer.
type reply struct {
	status int
	header http.Header
	body   map[string]any
	text   string
}

// at walks into the body: names and positions, separated by dots.
func (r reply) at(path string) any {
	var v any = r.body
	for part := range strings.SplitSeq(path, ".") {
		switch in := v.(type) {
		case map[string]any:
			v = in[part]
		case []any:
			var i int
			if _, err := fmt.Sscan(part, &i); err != nil || i >= len(in) {
				return nil
			}
			v = in[i]
		default:
			return nil
		}
	}
	return v
}

func (r reply) str(path string) string {
	text, _ := r.at(path).(string)
	return text
}

func (r reply) list(path string) []any {
	list, _ := r.at(path).([]any)
	return list
}

// places are the locations a refusal names.
func (r reply) places() []string {
	var out []string
	for i := range r.list("errors") {
		out = append(out, r.str(fmt.Sprintf("errors.%d.location", i)))
	}
	return out
}

// caller gives up what hangs: no call of these tests waits for longer.
var caller = &http.Client{Timeout: time.Minute}

// call sends a request: a text as it is, anything else as JSON. Headers come in pairs; an empty one is left out.
func (d *door) call(method, path, token string, body any, headers ...string) reply {
	d.t.Helper()
	var reader io.Reader
	switch b := body.(type) {
	case nil:
	case string:
		reader = strings.NewReader(b)
	default:
		text, err := json.Marshal(b)
		if err != nil {
			d.t.Fatal(err)
		}
		reader = bytes.NewReader(text)
	}
	request, err := http.NewRequestWithContext(d.t.Context(), method, d.url+path, reader)
	if err != nil {
		d.t.Fatal(err)
	}
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		if request.Header.Del(headers[i]); headers[i+1] != "" {
			request.Header.Set(headers[i], headers[i+1])
		}
	}
	response, err := caller.Do(request)
	if err != nil {
		d.t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		d.t.Fatal(err)
	}
	r := reply{status: response.StatusCode, header: response.Header, text: string(text)}
	_ = json.Unmarshal(text, &r.body)
	if r.status >= 400 && strings.HasPrefix(path, "/v1/") && method != "HEAD" {
		d.isProblem(method+" "+path, r)
	}
	return r
}

// isProblem holds every refusal to RFC 9457 and what the contract adds.
func (d *door) isProblem(what string, r reply) {
	d.t.Helper()
	if r.status >= 500 {
		d.t.Errorf("%s gave %d: %s", what, r.status, r.text)
	}
	if got := r.header.Get("Content-Type"); got != "application/problem+json" {
		d.t.Errorf("%s: %d came as %q", what, r.status, got)
	}
	for _, name := range []string{"type", "title", "status", "detail", "instance", "code", "request_id"} {
		if _, ok := r.body[name]; !ok {
			d.t.Errorf("%s: a problem without %s: %s", what, name, r.text)
		}
	}
	if r.body["status"] != float64(r.status) || r.str("request_id") != r.header.Get("X-Request-Id") {
		d.t.Errorf("%s: status or request id differ: %s", what, r.text)
	}
	if r.status == 429 && r.header.Get("Retry-After") == "" {
		d.t.Errorf("%s: 429 without Retry-After", what)
	}
}

// want fails unless the answer has the status and, where given, the code and the place.
func (d *door) want(r reply, status int, code string, places ...string) reply {
	d.t.Helper()
	if r.status != status || code != "" && r.str("code") != code {
		d.t.Fatalf("got %d %q, want %d %q: %s", r.status, r.str("code"), status, code, r.text)
	}
	for _, place := range places {
		if !slices.Contains(r.places(), place) {
			d.t.Errorf("%s names %v, not %s", r.text, r.places(), place)
		}
	}
	return r
}

func (d *door) same(what string, got, want any) {
	d.t.Helper()
	if !reflect.DeepEqual(got, want) {
		d.t.Errorf("%s: %v, want %v", what, got, want)
	}
}

func (d *door) token(id, secret string) string {
	d.t.Helper()
	form := url.Values{"grant_type": {"client_credentials"}, "client_id": {id}, "client_secret": {secret}}
	return d.want(d.call("POST", "/v1/auth/token", "", form.Encode(), "Content-Type", "application/x-www-form-urlencoded"), 200, "").str("access_token")
}

var everyScope = []string{"tasks:read", "tasks:write", "admin:read", "admin:write", "workers:register", "usage:read"}

// tenant makes a tenant and answers its id and the token of a key with every scope of a tenant.
func (d *door) tenant(slug string) (id, token string) {
	d.t.Helper()
	r := d.want(d.call("POST", "/v1/tenants", d.root, map[string]any{"name": "Tenant " + slug, "slug": slug}), 201, "")
	return r.str("id"), d.key(slug, everyScope...)
}

// key makes a key of a tenant, or of the platform, and answers a token of it.
func (d *door) key(slug string, scopes ...string) string {
	d.t.Helper()
	r := d.want(d.call("POST", "/v1/api-keys", d.root, map[string]any{"name": "a key", "scopes": scopes}, "Nightshift-Tenant", slug), 201, "")
	return d.token(r.str("client_id"), r.str("client_secret"))
}

// hand is a registered worker.
type hand struct {
	*door
	token, id, session string
	spec               map[string]any
}

var instances int

// hand registers a worker that takes any type, with what the spec adds.
func (d *door) hand(token string, spec map[string]any) *hand {
	d.t.Helper()
	instances++
	h := &hand{door: d, token: token, spec: map[string]any{
		"name": "hand", "version": "1.2", "slots": 50, "resources": map[string]any{"cpu": 64, "memory_mb": 65536},
		"instance_id": fmt.Sprintf("instance-%d", instances),
	}}
	for name, value := range spec {
		h.spec[name] = value
	}
	h.register()
	return h
}

func (h *hand) register() reply {
	h.t.Helper()
	r := h.want(h.call("POST", "/v1/workers", h.token, h.spec), 201, "")
	h.id, h.session = r.str("worker_id"), r.str("session")
	return r
}

func (h *hand) ask(path string, body any) reply {
	h.t.Helper()
	return h.call("POST", "/v1/workers/"+h.id+path, h.token, body, "Nightshift-Session", h.session)
}

// claim takes up to so many tasks and answers their ids and tokens.
func (h *hand) claim(most int, waitSeconds float64) (ids, tokens []string, r reply) {
	h.t.Helper()
	r = h.want(h.ask("/claim", map[string]any{"max_tasks": most, "wait_seconds": waitSeconds}), 200, "")
	for i := range r.list("tasks") {
		ids = append(ids, r.str(fmt.Sprintf("tasks.%d.task_id", i)))
		tokens = append(tokens, r.str(fmt.Sprintf("tasks.%d.lease_token", i)))
	}
	return ids, tokens, r
}

// one takes one task, waiting for it.
func (h *hand) one() (id, token string, r reply) {
	h.t.Helper()
	var ids, tokens []string
	h.await("a task to claim", func() bool {
		ids, tokens, r = h.claim(1, 10)
		return len(ids) == 1
	})
	return ids[0], tokens[0], r
}

// report tells how one attempt ended; more are further members of the result.
func (h *hand) report(token, status string, more map[string]any) reply {
	h.t.Helper()
	result := map[string]any{"lease_token": token, "status": status}
	for name, value := range more {
		result[name] = value
	}
	return h.want(h.ask("/results", map[string]any{"results": []any{result}}), 200, "")
}

func failure(class string) map[string]any {
	return map[string]any{"error": map[string]any{"class": class, "message": "as the test wants"}}
}

// submit makes a task and answers its id.
func (d *door) submit(token string, task map[string]any) string {
	d.t.Helper()
	return d.want(d.call("POST", "/v1/tasks", token, task), 201, "").str("id")
}

func (d *door) task(token, id string) reply {
	d.t.Helper()
	return d.want(d.call("GET", "/v1/tasks/"+id, token, nil), 200, "")
}
