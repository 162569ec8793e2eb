package worker

import (
	"bytes"
	"context"
	"mime"
	"sync"
	"time"

	"github.com/gofiber/fiber/v2"

	"nightshift/handlers"
	"nightshift/models"
	"nightshift/models/postgres"
	"nightshift/scheduler/engine"
	"nightshift/workers/protocol"
)

// Floor is where workers are received.
type Floor struct {
	reads  *postgres.Reads
	known  sync.Map // worker id → identity
	owners sync.Map // environment → tenant
}

// identity is what never changes of a worker.
type identity struct {
	tenant int32
	keyID  string
}

// NewFloor receives workers; what they need beside leases is read from the database.
func NewFloor(db *postgres.DB) *Floor { return &Floor{reads: postgres.NewReads(db)} }

// Routes are the endpoints of the worker protocol and of those who look at workers.
func (f *Floor) Routes() []handlers.Route {
	working := []string{handlers.WorkersRegister}
	ending := []string{handlers.WorkersRegister, handlers.AdminWrite}
	seeing := []string{handlers.TasksRead, handlers.AdminRead, handlers.WorkersRegister}
	return []handlers.Route{
		{Method: "POST", Path: "/v1/workers", Scopes: working, Handler: f.register, Doc: docRegister},
		{Method: "GET", Path: "/v1/workers", Scopes: seeing, Handler: f.list, Doc: docWorkers},
		{Method: "GET", Path: "/v1/workers/:id", Scopes: seeing, Handler: f.get, Doc: docWorker},
		{Method: "DELETE", Path: "/v1/workers/:id", Scopes: ending, Handler: f.remove, Doc: docRemove},
		{Method: "POST", Path: "/v1/workers/:id/drain", Scopes: ending, Handler: f.drain, Doc: docDrain},
		{Method: "POST", Path: "/v1/workers/:id/claim", Scopes: working, Handler: f.claim, Long: true, Doc: docClaim},
		{Method: "POST", Path: "/v1/scheduler/claim", Scopes: working, Handler: f.claim, Long: true, Doc: docSchedulerClaim},
		{Method: "POST", Path: "/v1/workers/:id/heartbeat", Scopes: working, Handler: f.heartbeat, MaxBody: handlers.BulkLimit, Doc: docHeartbeat},
		{Method: "POST", Path: "/v1/workers/:id/results", Scopes: working, Handler: f.results, MaxBody: handlers.BulkLimit, Bulk: true, Doc: docResults},
		{Method: "POST", Path: "/v1/tasks/:id/complete", Scopes: working, Handler: f.complete, MaxBody: singleLimit, Doc: docComplete},
		{Method: "POST", Path: "/v1/tasks/:id/fail", Scopes: working, Handler: f.fail, Doc: docFail},
		{Method: "POST", Path: "/v1/tasks/:id/heartbeat", Scopes: working, Handler: f.beat, Doc: docBeat},
		{Method: "POST", Path: "/v1/tasks/:id/checkpoint", Scopes: working, Handler: f.checkpoint, Doc: docCheckpoint},
		{Method: "POST", Path: "/v1/tasks/:id/logs", Scopes: working, Handler: f.logs, Doc: docLogs},
		{Method: "POST", Path: "/v1/tasks/:id/spans", Scopes: working, Handler: f.spans, Doc: docSpans},
		{Method: "GET", Path: "/v1/tasks/:id/dependencies", Scopes: []string{handlers.TasksRead, handlers.WorkersRegister}, Handler: f.dependencies, Doc: docDependencies},
	}
}

// singleLimit leaves a result of the largest size room for what stands beside it.
const singleLimit = 2 << 20

const (
	brainPatience = 10 * time.Second
	lookPatience  = 2 * time.Second // for live facts, in whose place saved ones are shown
)

// ask sends a command of the caller to the brain.
func ask(d *handlers.Deps, c *fiber.Ctx, fill func(*engine.Command)) (*engine.Answer, error) {
	cmd := d.Command(handlers.CallerOf(c))
	fill(cmd)
	patience := brainPatience
	if cmd.Look != nil {
		patience = lookPatience
	}
	ctx, cancel := context.WithTimeout(c.UserContext(), patience)
	defer cancel()
	return d.Door.Do(ctx, cmd)
}

// optionalBody reads a body that may be left out; it is then an empty object.
func optionalBody(c *fiber.Ctx) ([]byte, error) {
	text, err := handlers.RawBody(c)
	switch {
	case err != nil:
		return nil, err
	case len(bytes.TrimSpace(text)) == 0:
		return []byte("{}"), nil
	}
	return text, wantsJSON(c)
}

func wantsJSON(c *fiber.Ctx) error {
	given := c.Get(fiber.HeaderContentType)
	if media, _, err := mime.ParseMediaType(given); err != nil || media != fiber.MIMEApplicationJSON {
		return models.Errorf(models.UnsupportedMediaType, "send application/json, not %q", handlers.Shorten(given, 80))
	}
	return nil
}

// session reads the worker of the path and the session header of a worker's call.
func (f *Floor) session(c *fiber.Ctx, text string) (worker, session models.ID, err error) {
	if worker, err = models.ParseID(models.WorkerPrefix, text); err != nil {
		return worker, session, err
	}
	if _, err = f.ours(c, worker); err != nil {
		return worker, session, err
	}
	given := c.Get(protocol.HeaderSession)
	if given == "" {
		return worker, session, models.Errorf(models.SessionRequired, "send the session that POST /v1/workers answered in the header %s", protocol.HeaderSession)
	}
	if session, err = models.ParseID(handlers.SessionPrefix, given); err != nil {
		err = models.Errorf(models.SessionReplaced, "the header %s names no session of this worker", protocol.HeaderSession)
	}
	return worker, session, err
}

// ours finds out whose a worker is and refuses another tenant's as if it were not there.
func (f *Floor) ours(c *fiber.Ctx, worker models.ID) (identity, error) {
	caller := handlers.CallerOf(c)
	who, err := f.identify(c.UserContext(), worker)
	if err == nil && !caller.Platform && who.tenant != caller.Tenant {
		err = models.Errorf(models.NotFound, "there is no %q here", worker.Text(models.WorkerPrefix))
	}
	return who, err
}

func (f *Floor) identify(ctx context.Context, worker models.ID) (identity, error) {
	if known, ok := f.known.Load(worker); ok {
		return known.(identity), nil
	}
	row, err := f.reads.Worker(ctx, 0, true, worker)
	if err != nil {
		return identity{}, err
	}
	who := identity{row.Tenant, row.KeyID}
	f.known.Store(worker, who)
	return who, nil
}

// serves says whether the caller may touch the leases of an environment: its tenant's alone, the platform all.
func (f *Floor) serves(c *fiber.Ctx, env int32) (bool, error) {
	caller := handlers.CallerOf(c)
	if caller.Platform || caller.Env == env {
		return true, nil
	}
	if owner, ok := f.owners.Load(env); ok {
		return owner.(int32) == caller.Tenant, nil
	}
	owner, err := f.reads.TenantOf(c.UserContext(), env)
	if err != nil || owner == 0 {
		return false, err
	}
	f.owners.Store(env, owner)
	return owner == caller.Tenant, nil
}
