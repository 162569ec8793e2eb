package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"runtime/debug"
	"strings"
	"time"

	"github.com/gofiber/fiber/v2"

	"nightshift/handlers"
	"nightshift/handlers/api"
	"nightshift/handlers/ui"
	"nightshift/handlers/worker"
	"nightshift/models"
	"nightshift/models/postgres"
	"nightshift/scheduler/engine"
	"nightshift/scheduler/loop"
	"nightshift/scheduler/relay"
	"nightshift/web"
	"nightshift/web/certs"
	"nightshift/web/forward"
)

// drainFor is how long a stopping replica may take for the answers under way and, after them, for the hand-over.
const drainFor = 4 * time.Second

// gcPercent lets the heap grow to four times what lives before it is collected: a batch leaves much short-lived garbage
// behind, and the board is bounded.
const gcPercent = 300

// replica is one server, wired but not yet running.
type replica struct {
	ground   *ground
	db       *postgres.DB
	loop     *loop.Loop
	door     *forward.Door
	relay    *relay.Relay
	deps     *handlers.Deps
	hub      *ui.Hub
	front    *web.Server
	listener net.Listener
	url      string // at which people and workers reach it
	caFile   string // that its certificate is checked against; empty: the system's authorities
	life     context.Context
	end      context.CancelFunc
}

// serve runs a replica until the context ends.
func serve(ctx context.Context, g *ground) error {
	debug.SetGCPercent(gcPercent)
	r, err := newReplica(ctx, g)
	if err != nil {
		return err
	}
	defer r.close()
	g.log.Info("serving", "url", r.url, "data", g.config.Data)
	return r.run(ctx)
}

// newReplica opens listener and database, migrates, and wires the rooms together.
func newReplica(ctx context.Context, g *ground) (_ *replica, err error) {
	r := &replica{ground: g}
	r.life, r.end = context.WithCancel(context.WithoutCancel(ctx))
	defer func() {
		if err != nil {
			r.close()
		}
	}()
	if err := r.listen(); err != nil {
		return nil, err
	}
	c := &g.config
	if r.db, err = postgres.Open(ctx, postgres.Options{
		URL: c.DatabaseURL, OwnerURL: c.DatabaseOwnerURL, DirectURL: c.DatabaseDirectURL, NoStatementCache: !c.StatementCache, Logger: g.log,
		ConnectTimeout: g.patience, BatchTimeout: g.patience,
	}); err != nil {
		return nil, err
	}
	if err := r.db.Migrate(ctx); err != nil {
		return nil, err
	}
	r.loop = loop.New(r.db.Writer(), loop.Options{Address: c.AdvertiseURL, Logger: g.log})
	if err := r.wire(ctx); errors.Is(err, postgres.ErrSealed) {
		return nil, usageError{fmt.Errorf("NIGHTSHIFT_SECRET_KEY: %w", err)}
	} else if err != nil {
		return nil, err
	}
	return r, nil
}

// listen opens the listener first, so that a taken port is told before anything else is started.
func (r *replica) listen() error {
	c := &r.ground.config
	config, trust, err := certs.Config(certs.Options{Mode: c.TLS, Cert: c.TLSCert, Key: c.TLSKey, CA: c.TLSCA, Data: c.Data, Hosts: c.TLSHosts})
	if err != nil {
		return usageError{err}
	}
	plain, err := net.Listen("tcp", c.Listen)
	if err != nil {
		return fmt.Errorf("NIGHTSHIFT_LISTEN: %w", err)
	}
	r.listener, r.caFile = plain, trust
	scheme := "http"
	if config != nil {
		scheme, r.listener = "https", tls.NewListener(plain, config)
	}
	host, port, err := net.SplitHostPort(plain.Addr().String())
	if err != nil {
		return err
	}
	if ip := net.ParseIP(host); ip != nil && ip.IsUnspecified() {
		host = "localhost"
	}
	r.url = scheme + "://" + net.JoinHostPort(host, port)
	if c.AdvertiseURL == "" {
		c.AdvertiseURL = r.url
	}
	c.AdvertiseURL = strings.TrimRight(c.AdvertiseURL, "/")
	return nil
}

// wire fills what handlers work with and builds the front.
func (r *replica) wire(ctx context.Context) error {
	c, log := &r.ground.config, r.ground.log
	pool, err := certs.Trust(r.caFile)
	if err != nil {
		return err
	}
	deps := &handlers.Deps{}
	r.door = forward.New(forward.Options{
		Local: r.loop, Role: func() (bool, string) { role := r.loop.Role(); return role.Brain, role.Address },
		Client: forward.NewClient(&tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}),
		Token:  func(context.Context) (string, error) { return deps.Signer.BrainToken(deps.Replica.Text("rep")) },
		Logger: log,
	})
	opened, err := handlers.Open(ctx, handlers.Settings{
		DB: r.db, Door: r.door, SecretKey: c.SecretKey, Version: versionText(), Logger: log,
		BootstrapID: c.BootstrapClientID, BootstrapSecret: c.BootstrapClientSecret, AdminEmail: c.AdminEmail, AdminPassword: c.AdminPassword,
	})
	if err != nil {
		return err
	}
	*deps = *opened
	r.deps = deps
	r.relay = r.newRelay(deps)
	work := api.NewWork(r.db)
	work.Follow = r.followTask
	routes := append(work.Routes(), api.PlatformRoutes()...)
	routes = append(routes, worker.NewFloor(r.db).Routes()...)
	r.hub = ui.NewHub()
	r.front, err = web.New(web.Options{
		Deps: deps, Routes: routes, Pages: ui.Pages(r.hub), Trouble: ui.Trouble, Mount: []func(fiber.Router){r.mountForward(deps)},
		Relay: r.relay, Loop: r.loop,
		Secure: c.TLS != "off" || c.BehindProxy, BehindProxy: c.BehindProxy, Address: c.AdvertiseURL, PID: os.Getpid(),
	})
	return err
}

// newRelay follows the events: woken by this replica's loop or, while another decides, by the brain over a held
// connection.
func (r *replica) newRelay(deps *handlers.Deps) *relay.Relay {
	return relay.New(relay.Options{
		Read: func(ctx context.Context, envs []int32, after int64, limit int) ([]relay.Packed, error) {
			rows, err := r.db.Events(ctx, envs, after, limit)
			packed := make([]relay.Packed, len(rows))
			for i, row := range rows {
				packed[i] = relay.Packed{Batch: row.Batch, Env: row.Env, Items: row.Items}
			}
			return packed, err
		},
		Oldest: r.db.OldestEvents, Tail: r.db.LastBatch, Logger: deps.Logger,
		Wakes: []<-chan int64{r.loop.Subscribe(r.life), r.door.Follow(r.life)},
	})
}

// followTask tells whenever something happened to a task.
func (r *replica) followTask(ctx context.Context, env int32, task models.ID) <-chan struct{} {
	out := make(chan struct{}, 1)
	events := r.relay.Subscribe(ctx, relay.Filter{Envs: []int32{env}, Task: task}, relay.Live)
	go func() {
		defer close(out)
		for range events {
			select {
			case out <- struct{}{}:
			default:
			}
		}
	}()
	return out
}

const (
	pagesLinger = time.Minute // how long the events are still followed after the last browser has left
	pagesRecent = 100         // batches before now whose events a page shows at once
)

// followPages tells the browsers' streams what happens, while any browser looks.
func (r *replica) followPages(ctx context.Context) {
	for ctx.Err() == nil {
		if !r.hub.Watched() {
			select {
			case <-ctx.Done():
				return
			case <-r.hub.Joined():
			}
		}
		watching, stop := context.WithCancel(ctx)
		go r.stopWhenUnwatched(watching, stop)
		events := make(chan models.Event)
		go func() {
			defer close(events)
			from := relay.Position{Batch: max(0, r.loop.Role().Batch-pagesRecent)}
			for e := range r.relay.Subscribe(watching, relay.Filter{}, from) {
				select {
				case events <- e.Event:
				case <-watching.Done():
					return
				}
			}
		}()
		r.hub.Follow(watching, events)
		stop()
	}
}

func (r *replica) stopWhenUnwatched(ctx context.Context, stop func()) {
	for last := time.Now(); ctx.Err() == nil; {
		select {
		case <-ctx.Done():
		case <-time.After(pagesLinger / 6):
		}
		if r.hub.Watched() {
			last = time.Now()
		} else if time.Since(last) > pagesLinger {
			stop()
		}
	}
}

// retain deletes what is past its time, a bounded number of rows a minute.
func (r *replica) retain(ctx context.Context) {
	ended := &leaseSweeps{}
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(time.Minute):
		}
		gone, err := r.db.Retain(ctx, r.deps.Now())
		if err == nil {
			err = r.db.RecordSweeps(ctx, r.deps.Now(), postgres.SweepEvery, map[string]int64{"retention": sum(gone)})
		}
		if err != nil && ctx.Err() == nil {
			r.ground.log.Warn("old rows could not be deleted", "error", err)
		}
		if err := r.sweep(ctx); err != nil && ctx.Err() == nil {
			r.ground.log.Warn("the rows could not be looked after", "error", err)
		}
		if n, decides := ended.since(r.loop.Figures()); decides {
			if err := r.db.RecordSweeps(ctx, r.deps.Now(), 1, map[string]int64{"expired_leases": n}); err != nil && ctx.Err() == nil {
				r.ground.log.Warn("the sweep of leases could not be recorded", "error", err)
			}
		}
	}
}

// leaseSweeps follow what the brain's sweep of leases has found: it goes on every second on the board and is recorded with the others.
type leaseSweeps struct{ found int64 }

// since is how many leases have run out or timed out since it was asked last; false where this replica does not decide.
func (l *leaseSweeps) since(f loop.Figures) (n int64, decides bool) {
	if !f.Brain || f.Board == nil {
		return 0, false
	}
	found := f.Board.LeasesLost["silent"] + f.Board.LeasesLost["timed_out"]
	if n = found - l.found; n < 0 { // it counts from its beginning, and has begun anew
		n = found
	}
	l.found = found
	return n, true
}

func sum(counts map[string]int64) (all int64) {
	for _, n := range counts {
		all += n
	}
	return all
}

// sweep looks after the rows and tells the brain what it has to know of that.
func (r *replica) sweep(ctx context.Context) error {
	found, err := r.db.Sweep(ctx, r.deps.Now())
	if err != nil || len(found.Drift)+len(found.Stuck) == 0 {
		return err
	}
	cmd := &engine.Command{ID: r.deps.Mint(), Actor: models.Actor{Kind: "brain"}, Recheck: &engine.Recheck{Flows: found.Stuck}}
	for _, d := range found.Drift {
		r.ground.log.Error("a counter is not what the rows say", "alert", "counter_drift", "env", d.Env, "what", d.What)
		cmd.Recheck.Drift = append(cmd.Recheck.Drift, engine.Drifted{Env: d.Env, Task: d.Task, Workflow: d.Workflow, What: d.What, Waits: d.Waits, More: d.More})
	}
	answer, err := r.deps.Door.Do(ctx, cmd)
	if err != nil {
		return err
	}
	return r.db.RecordSweeps(ctx, r.deps.Now(), postgres.SweepEvery, map[string]int64{"waits_repaired": answer.Matched})
}

// mountForward takes what other replicas send to the brain.
func (r *replica) mountForward(deps *handlers.Deps) func(fiber.Router) {
	verify := func(token string) error {
		_, err := deps.Signer.Verify(context.Background(), token, handlers.AudienceBrain)
		return err
	}
	return func(router fiber.Router) {
		for path, handler := range map[string]func(context.Context, []byte, forward.Sender) (int, []byte){
			forward.Path: forward.Handler(r.loop, verify), forward.BatchesPath: forward.Batches(r.loop.Subscribe, verify),
		} {
			router.Post(path, func(c *fiber.Ctx) error {
				body := append([]byte(nil), c.Body()...)
				ctx, stop := handlers.Attend(c)
				defer stop()
				status, answer := handler(ctx, body, forward.SenderOf(func(name string) string { return c.Get(name) }))
				c.Set(fiber.HeaderContentType, fiber.MIMEApplicationJSON)
				return c.Status(status).Send(answer)
			})
		}
	}
}

// run serves until the context ends: then streams and polls end, answers under way are given, and the brain is handed
// over.
func (r *replica) run(ctx context.Context) error {
	ended := make(chan error, 2)
	go func() { ended <- r.loop.Run(r.life) }()
	go func() { ended <- r.relay.Run(r.life) }()
	go r.followPages(r.life)
	go r.retain(r.life)
	served := make(chan error, 1)
	go func() { served <- r.front.Serve(r.listener) }()
	var err error
	select {
	case <-ctx.Done():
		err = r.front.Shutdown(drainFor)
	case err = <-served:
	}
	r.end()
	for range 2 {
		select {
		case <-ended:
		case <-time.After(drainFor):
			return errors.Join(err, errors.New("the hand-over took too long"))
		}
	}
	if errors.Is(err, context.DeadlineExceeded) {
		err = nil // answers that took longer were cut: their callers ask again
	}
	return err
}

func (r *replica) close() {
	r.end()
	if r.listener != nil {
		_ = r.listener.Close() // closed already where it was served
	}
	if r.db != nil {
		r.db.Close()
	}
}
