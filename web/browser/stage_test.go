package browser

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"gorm.io/gorm"

	"nightshift/handlers"
	"nightshift/handlers/api"
	"nightshift/handlers/ui"
	"nightshift/handlers/worker"
	"nightshift/models"
	"nightshift/models/postgres"
	"nightshift/models/postgres/pgtest"
	"nightshift/scheduler/loop"
	"nightshift/scheduler/relay"
	"nightshift/web"
)

const (
	operator   = "operator@nightshift.example"
	word       = "correct horse battery staple"
	rootSecret = "a-bootstrap-secret-of-some-length"
)

type object = map[string]any

// stage is a whole replica with pages over a database of its own, and the platform's token.
type stage struct {
	t    *testing.T
	deps *handlers.Deps
	url  string
	root string
}

func newStage(t *testing.T) *stage {
	t.Helper()
	s := &stage{t: t}
	quiet := slog.New(slog.DiscardHandler)
	db, err := postgres.Open(t.Context(), postgres.Options{URL: pgtest.Migrated(t), PoolSize: 8, ConnectTimeout: time.Minute, BatchTimeout: time.Minute})
	s.must(err)
	s.must(db.Migrate(t.Context()))
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	s.must(err)
	s.url = "http://" + listener.Addr().String()
	writer := db.Writer()
	brain := loop.New(writer, loop.Options{Address: s.url, Logger: quiet})
	running, stop := context.WithCancel(context.Background())
	s.deps, err = handlers.Open(t.Context(), handlers.Settings{
		DB: db, Door: brain, SecretKey: bytes.Repeat([]byte{7}, 32), Version: "test", Logger: quiet,
		BootstrapID: "root", BootstrapSecret: rootSecret, AdminEmail: operator, AdminPassword: word,
	})
	s.must(err)
	events, hub := newRelay(db, brain.Subscribe(running)), ui.NewHub()
	front, err := web.New(web.Options{
		Deps: s.deps, Loop: brain, Relay: events, Address: s.url, PID: 1, Pages: ui.Pages(hub), Trouble: ui.Trouble,
		Routes: slices.Concat(api.PlatformRoutes(), api.NewWork(db).Routes(), worker.NewFloor(db).Routes()),
	})
	s.must(err)
	var ended []chan struct{}
	begin := func(work func()) {
		end := make(chan struct{})
		ended = append(ended, end)
		go func() { defer close(end); work() }()
	}
	begin(func() { _ = front.Serve(listener) })
	begin(func() { _ = brain.Run(running) })
	begin(func() { _ = events.Run(running) })
	begin(func() { follow(running, events, hub) })
	t.Cleanup(func() {
		s.must(front.Shutdown(time.Minute))
		stop()
		for _, end := range ended {
			<-end
		}
		writer.Close()
		db.Close()
	})
	s.await("a brain", func() bool { return brain.Role().Brain })
	s.root = s.token("root", rootSecret)
	return s
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

// follow tells the browsers' streams what happens.
func follow(ctx context.Context, from *relay.Relay, hub *ui.Hub) {
	for ctx.Err() == nil {
		events := make(chan models.Event)
		go func() {
			defer close(events)
			for e := range from.Subscribe(ctx, relay.Filter{}, relay.Live) {
				select {
				case events <- e.Event:
				case <-ctx.Done():
					return
				}
			}
		}()
		hub.Follow(ctx, events)
	}
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
	for end := time.Now().Add(time.Minute); !so(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			s.t.Fatalf("waited in vain for %s", what)
		}
	}
}

// member adds somebody with a role to a tenant. No endpoint does yet.
func (s *stage) member(email, role, slug string) {
	s.t.Helper()
	tenant, err := s.deps.World.Tenant(s.t.Context(), slug)
	s.must(err)
	hash, err := handlers.HashPassword(word)
	s.must(err)
	id, now := postgres.UUID(s.deps.Mint()), time.Now().UTC()
	s.must(s.deps.DB.Platform().Gorm(s.t.Context(), func(tx *gorm.DB) error {
		user := postgres.User{ID: id, Email: email, PasswordHash: hash, CreatedAt: now, UpdatedAt: now}
		membership := postgres.Membership{User: id, Tenant: tenant.Number, Role: role, CreatedAt: now}
		return errors.Join(tx.Create(&user).Error, tx.Create(&membership).Error)
	}))
}

// caller gives up what hangs.
var caller = &http.Client{Timeout: time.Minute}

// call sends JSON, wants success and answers the body. Headers come in pairs.
func (s *stage) call(method, path, token string, body any, headers ...string) object {
	s.t.Helper()
	status, text := s.send(method, path, token, body, headers...)
	if status >= 300 {
		s.t.Fatalf("%s %s gave %d: %s", method, path, status, text)
	}
	out := object{}
	if len(text) > 0 {
		s.must(json.Unmarshal(text, &out))
	}
	return out
}

func (s *stage) send(method, path, token string, body any, headers ...string) (status int, text []byte) {
	s.t.Helper()
	var reader io.Reader
	if form, ok := body.(url.Values); ok {
		reader = strings.NewReader(form.Encode())
		headers = append(headers, "Content-Type", "application/x-www-form-urlencoded")
	} else if body != nil {
		sent, err := json.Marshal(body)
		s.must(err)
		reader = bytes.NewReader(sent)
		headers = append(headers, "Content-Type", "application/json")
	}
	request, err := http.NewRequestWithContext(s.t.Context(), method, s.url+path, reader)
	s.must(err)
	if token != "" {
		headers = append(headers, "Authorization", "Bearer "+token)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	response, err := caller.Do(request)
	s.must(err)
	defer response.Body.Close()
	text, err = io.ReadAll(response.Body)
	s.must(err)
	return response.StatusCode, text
}

func (s *stage) token(id, secret string) string {
	s.t.Helper()
	form := url.Values{"grant_type": {"client_credentials"}, "client_id": {id}, "client_secret": {secret}}
	return str(s.call("POST", "/v1/auth/token", "", form), "access_token")
}

// str is a text inside a body: names and positions, separated by dots.
func str(in any, path string) string {
	for part := range strings.SplitSeq(path, ".") {
		switch v := in.(type) {
		case map[string]any:
			in = v[part]
		case []any:
			var i int
			if _, err := fmt.Sscan(part, &i); err != nil || i >= len(v) {
				return ""
			}
			in = v[i]
		}
	}
	text, _ := in.(string)
	return text
}
