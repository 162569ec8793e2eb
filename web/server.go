package web

import (
	"context"
	"errors"
	"net"
	"sort"
	"strings"
	"sync"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"

	"nightshift/handlers"
	"nightshift/models/postgres"
	"nightshift/scheduler/loop"
	"nightshift/scheduler/relay"
)

// Options are what a front needs.
type Options struct {
	Deps   *handlers.Deps
	Routes []handlers.Route // those of /v1; the front adds its own

	// Pages mounts the pages on a router that knows who is signed in; nil: there are none.
	Pages func(fiber.Router, *handlers.Deps)
	// Trouble draws an error for a browser; nil: problem+json for them too.
	Trouble func(c *fiber.Ctx, status int, code, detail, requestID string) error
	// Mount adds what is neither /v1 nor a page, like the path on which commands are forwarded; it guards itself.
	Mount []func(fiber.Router)

	Relay *relay.Relay // what follows the events; nil: streams answer unavailable
	Loop  *loop.Loop   // whose figures /metrics shows; nil: none

	Secure      bool   // browsers reach us over TLS: cookies are Secure
	BehindProxy bool   // the last address of X-Forwarded-For is the client's
	Address     string // where other replicas reach this one
	PID         int
}

// Server is the front of a replica.
type Server struct {
	App     *fiber.App
	options Options
	deps    *handlers.Deps
	base    context.Context // ends when the server begins to shut down; polls and streams hang on it
	end     context.CancelFunc
	meters  *meters
	quota   *quota
	spec    *document
	inner   fasthttp.RequestHandler // all routes

	requests context.Context // ends when what is under way gets no more time
	cut      context.CancelFunc

	mu       sync.Mutex
	listener net.Listener // once it serves
}

// Timeouts of connections.
const (
	readTimeout  = 30 * time.Second
	bulkTimeout  = 5 * time.Minute
	writeTimeout = 40 * time.Second // streams set their own before each flush
	idleTimeout  = 2 * time.Minute
)

// New builds the front. A route without a scope, or two for one method and path, are refused.
func New(o Options) (*Server, error) {
	if o.Relay != nil {
		o.Deps.Follow = follow(o.Relay)
	}
	base, end := context.WithCancel(context.Background())
	requests, cut := context.WithCancel(context.Background())
	s := &Server{options: o, deps: o.Deps, base: base, end: end, requests: handlers.WithDrain(requests, base), cut: cut, meters: newMeters(o.Deps, o.Loop), quota: newQuota()}
	routes := append(s.ownRoutes(), o.Routes...)
	if err := checkRoutes(routes); err != nil {
		end()
		return nil, err
	}
	var err error
	if s.spec, err = describe(routes); err != nil {
		end()
		return nil, err
	}
	s.App = fiber.New(fiber.Config{
		AppName: "nightshift", ServerHeader: "", DisableStartupMessage: true,
		Immutable: true, CaseSensitive: true, StrictRouting: true,
		ReadBufferSize: 16 << 10, BodyLimit: handlers.BulkLimit, StreamRequestBody: true, DisablePreParseMultipartForm: true,
		ReadTimeout: readTimeout, WriteTimeout: writeTimeout, IdleTimeout: idleTimeout,
		ErrorHandler: func(c *fiber.Ctx, err error) error { s.begin(c); return s.fail(c, err) },
	})
	s.App.Use(s.around)
	s.mount(routes)
	s.wrapMethods()
	s.deps.Inside = s.inside
	return s, nil
}

func (s *Server) mount(routes []handlers.Route) {
	sort.SliceStable(routes, func(i, j int) bool { return wild(routes[i].Path) < wild(routes[j].Path) })
	for _, r := range routes {
		handler := s.guarded(r)
		s.App.Add(r.Method, r.Path, handler)
		if r.Method == fiber.MethodGet {
			s.App.Add(fiber.MethodHead, r.Path, handler)
		}
	}
	for _, mount := range s.options.Mount {
		mount(s.App)
	}
	if s.options.Pages != nil {
		s.options.Pages(s.App.Group("", s.pages), s.deps)
	}
}

// wild counts the parameters of a path: fixed paths are matched first.
func wild(path string) int { return strings.Count(path, ":") + 10*strings.Count(path, "*") }

func checkRoutes(routes []handlers.Route) error {
	seen := map[string]bool{}
	for _, r := range routes {
		name := r.Method + " " + r.Path
		switch {
		case len(r.Scopes) == 0:
			return errors.New(name + " says no scope: a route is public, for any token, or names scopes")
		case r.Handler == nil:
			return errors.New(name + " has no handler")
		case seen[name]:
			return errors.New(name + " is there twice")
		}
		seen[name] = true
	}
	return nil
}

// wrapMethods answers methods that fiber does not know as it answers those that a path does not take.
func (s *Server) wrapMethods() {
	s.inner = s.App.Handler()
	known := map[string]bool{}
	for _, m := range s.App.Config().RequestMethods {
		known[m] = true
	}
	s.App.Server().Handler = func(ctx *fasthttp.RequestCtx) {
		if known[string(ctx.Method())] {
			s.inner(ctx)
			return
		}
		ctx.Request.Header.SetMethod(fiber.MethodTrace) // no route takes it
		s.inner(ctx)
	}
}

// Serve answers on the listener until Shutdown. Meanwhile clock, keys and the replica's row are tended.
func (s *Server) Serve(listener net.Listener) error {
	listener = &closedOnce{Listener: listener}
	s.mu.Lock()
	s.listener = listener
	over := s.base.Err() != nil
	s.mu.Unlock()
	if over { // Shutdown came first
		return listener.Close()
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.deps.Tend(s.base, postgres.Replica{Address: s.options.Address, PID: int32(s.options.PID)})
	}()
	err := s.App.Listener(listener)
	s.end()
	<-done
	return err
}

// Shutdown ends streams and long polls first, then waits for the answers under way; what takes longer is cut.
func (s *Server) Shutdown(patience time.Duration) error {
	s.mu.Lock()
	s.end()
	defer s.cut()
	listener := s.listener
	s.mu.Unlock()
	if listener != nil { // fasthttp forgets one that it was only just given
		if err := listener.Close(); err != nil {
			return err
		}
	}
	return s.App.ShutdownWithTimeout(patience)
}

// closedOnce is a listener that may be closed again.
type closedOnce struct {
	net.Listener
	once sync.Once
	err  error
}

// Close closes the listener the first time.
func (l *closedOnce) Close() error {
	l.once.Do(func() { l.err = l.Listener.Close() })
	return l.err
}

// Done ends when the server shuts down: streams watch it.
func (s *Server) Done() <-chan struct{} { return s.base.Done() }
