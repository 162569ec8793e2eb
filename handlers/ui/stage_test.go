package ui_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"gorm.io/gorm"

	"nightshift/handlers"
	"nightshift/handlers/api"
	"nightshift/handlers/ui"
	"nightshift/models"
	"nightshift/models/postgres"
	"nightshift/models/postgres/pgtest"
	"nightshift/scheduler/engine"
	"nightshift/scheduler/loop"
	"nightshift/web"
)

const (
	operator = "operator@nightshift.example"
	word     = "correct horse battery staple"
	nasty    = `a/b?c=d&e"><script>alert(1)</script>`
)

// stage is a whole replica over a database of its own, with pages.
type stage struct {
	t    *testing.T
	deps *handlers.Deps
	hub  *ui.Hub
	url  string
	env  int32 // production of the tenant north
}

func newStage(t *testing.T) *stage {
	t.Helper()
	s := &stage{t: t, hub: ui.NewHub()}
	db := pgtest.Opened(t)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	s.must(err)
	s.url = "http://" + listener.Addr().String()
	writer := db.Writer()
	brain := loop.New(writer, loop.Options{Address: s.url, Logger: slog.New(slog.DiscardHandler)})
	running, stop := context.WithCancel(context.Background())
	ended, served := make(chan struct{}), make(chan struct{})
	go func() { defer close(ended); _ = brain.Run(running) }()
	s.deps, err = handlers.Open(t.Context(), handlers.Settings{
		DB: db, Door: brain, SecretKey: bytes.Repeat([]byte{7}, 32), Version: "test", AdminEmail: operator, AdminPassword: word,
	})
	s.must(err)
	server, err := web.New(web.Options{
		Deps: s.deps, Address: s.url, PID: 1, Pages: ui.Pages(s.hub), Trouble: ui.Trouble,
		Routes: slices.Concat(api.PlatformRoutes(), api.NewWork(db).Routes()),
	})
	s.must(err)
	go func() { defer close(served); _ = server.Serve(listener) }()
	t.Cleanup(func() {
		s.must(server.Shutdown(time.Minute))
		<-served
		stop()
		<-ended
		writer.Close()
	})
	s.await("a brain", func() bool { return brain.Role().Brain })
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

// do asks the brain.
func (s *stage) do(set func(*engine.Command)) *engine.Answer {
	s.t.Helper()
	command := s.deps.Command(&handlers.Caller{Kind: handlers.KindUser, Sub: "test"})
	set(command)
	answer, err := s.deps.Door.Do(s.t.Context(), command)
	s.must(err)
	return answer
}

func (s *stage) tenant(slug, name string) int32 {
	s.t.Helper()
	made := s.do(func(c *engine.Command) {
		c.Configure = &engine.Configure{New: true, Action: "tenant.create", Tenant: &models.Tenant{ID: s.deps.Mint(), Slug: slug, Name: name, Weight: 2, Timezone: "UTC"}}
	}).Tenant
	env, err := s.deps.World.Environment(s.t.Context(), made.Number, "production")
	s.must(err)
	return env.Env
}

// member adds somebody with a role to a tenant.
func (s *stage) member(email, role, slug string) {
	s.t.Helper()
	tenant, err := s.deps.World.Tenant(s.t.Context(), slug)
	s.must(err)
	hash, err := handlers.HashPassword(word)
	s.must(err)
	id, now := s.deps.Mint(), time.Now().UTC()
	s.must(s.deps.DB.Platform().Gorm(s.t.Context(), func(tx *gorm.DB) error {
		user := postgres.User{ID: postgres.UUID(id), Email: email, PasswordHash: hash, CreatedAt: now, UpdatedAt: now}
		membership := postgres.Membership{User: postgres.UUID(id), Tenant: tenant.Number, Role: role, CreatedAt: now}
		return errors.Join(tx.Create(&user).Error, tx.Create(&membership).Error)
	}))
}

func (s *stage) submit(env int32, flow *engine.NewWorkflow, tasks ...engine.NewTask) []models.ID {
	s.t.Helper()
	ids := make([]models.ID, len(tasks))
	for i := range tasks {
		if tasks[i].ID.IsZero() {
			tasks[i].ID = s.deps.Mint()
		}
		if tasks[i].Input == nil {
			tasks[i].Input = json.RawMessage(`{}`)
		}
		tasks[i].Priority, tasks[i].MaxAttempts = 50, max(1, tasks[i].MaxAttempts)
		ids[i] = tasks[i].ID
	}
	s.do(func(c *engine.Command) { c.Submit = &engine.Submit{Env: env, Tasks: tasks, Workflow: flow} })
	return ids
}

func (s *stage) register(name string, tenant int32) *models.Worker {
	s.t.Helper()
	return s.do(func(c *engine.Command) {
		c.Register = &engine.Register{Worker: models.Worker{
			ID: s.deps.Mint(), Session: s.deps.Mint(), Tenant: tenant, Name: name, Instance: name, Version: "1.0", Pool: "gpu", CPUMilli: 8000, MemoryMB: 16384,
			GPUs: []models.GPUCard{{VRAMMB: 24576}}, Slots: 8, Models: []string{"minilm"}, Labels: map[string]string{"region": "eu"}, LeaseSeconds: 300,
		}}
	}).Worker
}

func (s *stage) claim(w *models.Worker, most int32) []engine.Lease {
	s.t.Helper()
	return s.do(func(c *engine.Command) {
		c.Claim = &engine.Claim{Worker: w.ID, Session: w.Session, Most: most}
	}).Claimed.Leases
}

func (s *stage) settle(w *models.Worker, lease engine.Lease, result engine.Result) {
	s.t.Helper()
	result.Token, result.Task = lease.Row.Token, models.TaskRef{Env: lease.Row.Env, ID: lease.Row.ID}
	s.do(func(c *engine.Command) {
		c.Settle = &engine.Settle{Worker: w.ID, Session: w.Session, Results: []engine.Result{result}}
	})
}

// browser is a person's browser: it keeps cookies and follows nothing by itself.
type browser struct {
	s      *stage
	client *http.Client
}

func (s *stage) browser() *browser {
	jar, err := cookiejar.New(nil)
	s.must(err)
	return &browser{s, &http.Client{Jar: jar, Timeout: time.Minute, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}
}

type seen struct {
	status   int
	header   http.Header
	html     string
	location string
}

func (b *browser) ask(request *http.Request) seen {
	b.s.t.Helper()
	request.Header.Set("Accept", "text/html")
	answer, err := b.client.Do(request)
	b.s.must(err)
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	b.s.must(err)
	return seen{answer.StatusCode, answer.Header, string(body), answer.Header.Get("Location")}
}

func (b *browser) get(path string) seen {
	b.s.t.Helper()
	request, err := http.NewRequestWithContext(b.s.t.Context(), "GET", b.s.url+path, nil)
	b.s.must(err)
	return b.ask(request)
}

func (b *browser) post(path string, fields url.Values, headers ...string) seen {
	b.s.t.Helper()
	request, err := http.NewRequestWithContext(b.s.t.Context(), "POST", b.s.url+path, strings.NewReader(fields.Encode()))
	b.s.must(err)
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	for i := 0; i+1 < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	return b.ask(request)
}

func (s *stage) signedIn(email string) *browser {
	s.t.Helper()
	b := s.browser()
	if got := b.post("/login", url.Values{"email": {email}, "password": {word}}); got.status != 303 {
		s.t.Fatalf("signing in as %s: %d %s", email, got.status, got.html)
	}
	return b
}

var csrfField = regexp.MustCompile(`name="csrf" value="([^"]+)"`)

// word is what the forms of the session carry.
func (b *browser) word() string {
	b.s.t.Helper()
	found := csrfField.FindStringSubmatch(b.get("/start").html)
	if found == nil {
		b.s.t.Fatal("the page has no form with a token")
	}
	return found[1]
}
