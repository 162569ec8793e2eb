package worker

import (
	"context"
	"math"
	"time"

	"github.com/gofiber/fiber/v2"

	"nightshift/handlers"
	"nightshift/handlers/body"
	"nightshift/models"
	"nightshift/models/postgres"
	"nightshift/scheduler/engine"
	"nightshift/workers/protocol"
)

// claimInput is the body of a claim.
type claimInput struct {
	worker string // of the form that names it in the body
	most   int32
	wait   time.Duration
	free   *engine.Free
}

func readClaim(c *fiber.Ctx, named bool) (in claimInput, err error) {
	in = claimInput{most: 1}
	text, err := optionalBody(c)
	if err != nil {
		return in, err
	}
	p := &body.Problems{}
	v, err := body.Open(text, "body", p)
	if err != nil {
		return in, err
	}
	v.Members(func(name string, m body.Value) {
		switch {
		case name == "worker_id" && named:
			in.worker = m.String(1, maxText)
		case name == "max_tasks":
			if !m.Null() {
				in.most = int32(m.Int(1, protocol.MaxClaimTasks))
			}
		case name == "wait_seconds":
			if !m.Null() {
				in.wait = time.Duration(m.Number(0, protocol.MaxWaitSeconds) * float64(time.Second))
			}
		case name == "free":
			if !m.Null() {
				in.free = readFree(m)
			}
		default:
			m.Wrong("there is no such field")
		}
	})
	if named && in.worker == "" {
		p.Addf("body.worker_id", "is required")
	}
	return in, p.Err(models.ValidationFailed)
}

// readFree reads the room that a worker says it has. Cards are counted from its leases: which are free the brain knows.
func readFree(v body.Value) *engine.Free {
	free := &engine.Free{}
	v.Members(func(name string, m body.Value) {
		if m.Null() {
			return
		}
		switch name {
		case "slots":
			if m.IsObject() {
				free.BySlot = map[string]int32{}
				m.Members(func(kind string, n body.Value) {
					if _, ok := models.ParseKind(kind); !ok {
						n.Wrong("there is no such kind")
						return
					}
					free.BySlot[kind] = int32(n.Int(0, maxSlots))
				})
				return
			}
			n := int32(m.Int(0, maxSlots))
			free.Slots = &n
		case "cpu":
			n := int64(math.Floor(m.Number(0, 10_000) * 1000))
			free.CPUMilli = &n
		case "memory_mb":
			n := m.Int(0, maxMB)
			free.MemoryMB = &n
		case "gpus":
			m.Elements(func(_ int, e body.Value) { e.Int(0, maxCards-1) })
		default:
			m.Wrong("there is no such field")
		}
	})
	return free
}

// claim leases tasks to a worker. It waits for some, as long as somebody waits for the answer.
func (f *Floor) claim(d *handlers.Deps, c *fiber.Ctx) error {
	if err := handlers.NoQuery(c); err != nil {
		return err
	}
	named := c.Params("id") == ""
	in, err := readClaim(c, named)
	if err != nil {
		return err
	}
	text := in.worker
	if !named {
		if text, err = handlers.PathParam(c, "id"); err != nil {
			return err
		}
	}
	worker, session, err := f.session(c, text)
	if err != nil {
		return err
	}
	if in.wait == 0 {
		return f.take(c.UserContext(), d, c, &engine.Claim{Worker: worker, Session: session, Most: in.most, Free: in.free}, 0)
	}
	ctx, stop := handlers.Attend(c)
	defer stop()
	return f.take(ctx, d, c, &engine.Claim{Worker: worker, Session: session, Most: in.most, Free: in.free}, in.wait)
}

// take asks for leases until there are some or the wait ends; where the brain changes meanwhile it asks again. A server
// about to end asks no more, but what it got it delivers.
func (f *Floor) take(ctx context.Context, d *handlers.Deps, c *fiber.Ctx, claim *engine.Claim, wait time.Duration) error {
	end := time.Now().Add(wait)
	asking, stop := ctx, func() {}
	if wait > 0 {
		asking, stop = handlers.UntilDrain(ctx)
	}
	defer stop()
	for {
		left := max(time.Until(end), 0)
		claim.WaitMS = left.Milliseconds()
		claimed, err := f.lease(asking, d, c, claim, left+brainPatience)
		switch {
		case err == nil:
			return f.deliver(ctx, d, c, claimed)
		case asking.Err() != nil:
			return handlers.Answer(c, fiber.StatusOK, emptyClaim)
		case !changing(err) || time.Until(end) < askAgain:
			return err
		}
		select {
		case <-asking.Done():
		case <-time.After(askAgain):
		}
	}
}

const askAgain = 200 * time.Millisecond

// changing says that no brain decides just now: one will.
func changing(err error) bool {
	switch models.CodeOf(err) {
	case models.Unavailable, models.FenceLost, models.Unclear:
		return true
	}
	return false
}

func (f *Floor) lease(ctx context.Context, d *handlers.Deps, c *fiber.Ctx, claim *engine.Claim, patience time.Duration) (*engine.Claimed, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	cmd := d.Command(handlers.CallerOf(c))
	cmd.Claim = claim
	answer, err := d.Door.Do(ctx, cmd)
	if err != nil {
		return nil, err
	}
	return answer.Claimed, nil
}

var emptyClaim = protocol.ClaimAnswer{Tasks: []protocol.Lease{}, Signals: []protocol.LeaseSignal{}}

// deliver reads what the tasks come with and answers; what can't be delivered goes back at once.
func (f *Floor) deliver(ctx context.Context, d *handlers.Deps, c *fiber.Ctx, claimed *engine.Claimed) error {
	leases := claimed.Leases
	if len(leases) == 0 && len(claimed.Signals) == 0 {
		return answerBytes(c, []byte(`{"tasks":[],"signals":[]}`))
	}
	briefs, err := f.briefs(ctx, leases)
	if err == nil {
		err = f.children(ctx, leases, briefs)
	}
	if err == nil {
		err = f.marks(ctx, leases, briefs)
	}
	if err == nil {
		err = f.feeds(ctx, briefs)
	}
	if err == nil {
		err = f.items(ctx, leases, briefs)
	}
	if err == nil && ctx.Err() != nil {
		err = ctx.Err()
	}
	if err != nil {
		f.giveBack(d, c, leases)
		return err
	}
	return answerBytes(c, appendClaim(nil, claimed, briefs))
}

// briefs are what tasks come with: the leases of new ones have it already, of the others it is read.
func (f *Floor) briefs(ctx context.Context, leases []engine.Lease) (map[models.TaskRef]*postgres.Brief, error) {
	var refs []models.TaskRef
	for i := range leases {
		if row := &leases[i].Row; leases[i].Spec == nil {
			refs = append(refs, models.TaskRef{Env: row.Env, ID: row.ID})
		}
	}
	briefs := make(map[models.TaskRef]*postgres.Brief, len(leases))
	if len(refs) > 0 {
		var err error
		if briefs, err = f.reads.Briefs(ctx, refs); err != nil {
			return nil, err
		}
	}
	for i := range leases {
		if s := leases[i].Spec; s != nil {
			briefs[models.TaskRef{Env: s.Env, ID: s.ID}] = &postgres.Brief{Payload: s.Payload, Input: s.Input, Trace: s.Trace}
		}
	}
	return briefs, nil
}

// marks adds the watermarks of tasks that name one.
func (f *Floor) marks(ctx context.Context, leases []engine.Lease, briefs map[models.TaskRef]*postgres.Brief) error {
	for i := range leases {
		row := &leases[i].Row
		name := engine.MarkOf(row)
		brief := briefs[models.TaskRef{Env: row.Env, ID: row.ID}]
		if name == "" || brief == nil {
			continue
		}
		mark, _, err := f.reads.MarkOf(ctx, row.Env, name)
		if err != nil {
			return err
		}
		brief.Watermark = mark
	}
	return nil
}

// children adds what became of the children of tasks that have some.
func (f *Floor) children(ctx context.Context, leases []engine.Lease, briefs map[models.TaskRef]*postgres.Brief) error {
	var parents []models.TaskRef
	for i := range leases {
		if row := &leases[i].Row; row.Has(models.HasChildren) {
			parents = append(parents, models.TaskRef{Env: row.Env, ID: row.ID})
		}
	}
	if len(parents) == 0 {
		return nil
	}
	return f.reads.ChildrenOf(ctx, parents, briefs)
}

// giveBack returns leases, whether or not anybody still waits.
func (f *Floor) giveBack(d *handlers.Deps, c *fiber.Ctx, leases []engine.Lease) {
	cmd := d.Command(handlers.CallerOf(c))
	cmd.Return = &engine.Return{}
	for i := range leases {
		cmd.Return.Tokens = append(cmd.Return.Tokens, leases[i].Row.Token)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.UserContext()), brainPatience)
	defer cancel()
	if _, err := d.Door.Do(ctx, cmd); err != nil {
		// Their worker's next beats do not list them, and so they go back then.
		d.Logger.Warn("leases could not be given back", "request_id", handlers.RequestID(c), "leases", len(leases), "error", err)
	}
}

func answerBytes(c *fiber.Ctx, text []byte) error {
	c.Set(fiber.HeaderContentType, fiber.MIMEApplicationJSON)
	c.Set(fiber.HeaderCacheControl, "no-store")
	return c.Status(fiber.StatusOK).Send(text)
}

// dependencies lists what a task waited for, for whoever may read it or holds its lease.
func (f *Floor) dependencies(d *handlers.Deps, c *fiber.Ctx) error {
	id, err := handlers.PathID(c, "id", models.TaskPrefix)
	if err != nil {
		return err
	}
	q, err := handlers.ReadOldestFirst(d, c)
	if err != nil {
		return err
	}
	ref, err := f.readable(c, id)
	if err != nil {
		return err
	}
	q.Limit = min(q.Limit, postgres.ClaimDependencies)
	list := postgres.DependencyList{Desc: q.Desc, Limit: q.Limit + 1}
	if list.More, err = q.After(&list.After); err != nil {
		return err
	}
	rows, count, err := f.reads.Dependencies(c.UserContext(), ref, list)
	if err != nil {
		return err
	}
	page, err := handlers.PageOf(q, rows, viewDependency, func(row postgres.Dependency) any { return row.Task })
	if err != nil {
		return err
	}
	if q.Count {
		page.Total = &handlers.Total{Value: count, Relation: "eq"}
	}
	return handlers.Answer(c, fiber.StatusOK, page)
}

func viewDependency(row postgres.Dependency) protocol.Dependency {
	v := protocol.Dependency{Key: handlers.Null(row.Key), TaskID: row.Task.Text(models.TaskPrefix), State: row.State.String(), Result: row.Result}
	if len(v.Result) == 0 {
		v.Result = []byte("null")
	}
	return v
}

// readable says which task is meant: its lease opens it to its worker, tasks:read to its environment's people.
func (f *Floor) readable(c *fiber.Ctx, id models.ID) (models.TaskRef, error) {
	caller := handlers.CallerOf(c)
	gone := models.Errorf(models.NotFound, "there is no %q here", id.Text(models.TaskPrefix))
	if ref, token, ok := models.ParseWireToken(c.Get(protocol.HeaderLease)); ok && ref.ID == id {
		serves, err := f.serves(c, ref.Env)
		if err != nil || !serves {
			return ref, orElse(err, gone)
		}
		holds, err := f.reads.HoldsLease(c.UserContext(), ref, token)
		if err != nil || holds {
			return ref, err
		}
	}
	if !caller.Holds(handlers.TasksRead) || caller.Env == 0 {
		return models.TaskRef{}, gone
	}
	_, err := f.reads.State(c.UserContext(), caller.Scope(), caller.Env, id)
	return models.TaskRef{Env: caller.Env, ID: id}, err
}

func orElse(err, other error) error {
	if err != nil {
		return err
	}
	return other
}
