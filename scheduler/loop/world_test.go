package loop

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"nightshift/models"
	"nightshift/models/memory"
	"nightshift/scheduler/engine"
)

// shaky is a store with faults: the reference store behind it does the work.
type shaky struct {
	*memory.Store
	mu      sync.Mutex
	apply   []func(plan *models.Plan, do func() error) error // what becomes of the next Applies
	reads   []error                                          // what the next Facts, Loads and Refills answer
	down    bool                                             // nothing answers: calls end after a second, as a store's do
	freeze  chan struct{}                                    // the process stands still until it is closed
	refuses *int                                             // the database answers nothing, at once; this counts how often
	loads   int
	// weigh may refuse any plan, and take its time for that.
	weigh func(plan *models.Plan) error
}

func newShaky() *shaky {
	return &shaky{Store: memory.New(func() models.Instant { return models.InstantOf(time.Now()) })}
}

// pass lets a call through, or not.
func (s *shaky) pass(ctx context.Context, reads bool) error {
	s.mu.Lock()
	freeze, down := s.freeze, s.down
	var err error
	if s.refuses != nil {
		*s.refuses++
		err = models.Errorf(models.Unavailable, "connection refused")
	}
	if reads && len(s.reads) > 0 {
		err, s.reads = s.reads[0], s.reads[1:]
	}
	s.mu.Unlock()
	if freeze != nil {
		<-freeze
	}
	if down {
		ctx, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		<-ctx.Done()
		return models.Errorf(models.Unavailable, "no answer: %w", ctx.Err())
	}
	return err
}

func (s *shaky) Facts(ctx context.Context, need *models.Need) (*models.Facts, error) {
	if err := s.pass(ctx, true); err != nil {
		return nil, err
	}
	return s.Store.Facts(ctx, need)
}

func (s *shaky) Apply(ctx context.Context, plan *models.Plan) (effects *models.Effects, err error) {
	if err := s.pass(ctx, false); err != nil {
		return nil, err
	}
	do := func() (err error) { effects, err = s.Store.Apply(ctx, plan); return err }
	s.mu.Lock()
	var fault func(*models.Plan, func() error) error
	if len(s.apply) > 0 {
		fault, s.apply = s.apply[0], s.apply[1:]
	}
	weigh := s.weigh
	s.mu.Unlock()
	if weigh != nil {
		if err := weigh(plan); err != nil {
			return nil, err
		}
	}
	if fault == nil {
		return effects, do()
	}
	if err := fault(plan, do); err != nil {
		return nil, err
	}
	return effects, do()
}

func (s *shaky) Load(ctx context.Context, heads, most int) (*models.Snapshot, error) {
	if err := s.pass(ctx, true); err != nil {
		return nil, err
	}
	s.mu.Lock()
	s.loads++
	s.mu.Unlock()
	return s.Store.Load(ctx, heads, most)
}

func (s *shaky) Brain(ctx context.Context) (models.Brain, error) {
	if err := s.pass(ctx, false); err != nil {
		return models.Brain{}, err
	}
	return s.Store.Brain(ctx)
}

func (s *shaky) Renew(ctx context.Context, epoch int64) error {
	if err := s.pass(ctx, false); err != nil {
		return err
	}
	return s.Store.Renew(ctx, epoch)
}

func (s *shaky) Recover(ctx context.Context, epoch, batch int64) (bool, int64, error) {
	if err := s.pass(ctx, false); err != nil {
		return false, 0, err
	}
	return s.Store.Recover(ctx, epoch, batch)
}

// fails makes the next Applies answer with these codes; an Unclear one after it happened, as "happened" says.
func (s *shaky) fails(happened bool, codes ...models.Code) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, code := range codes {
		s.apply = append(s.apply, func(_ *models.Plan, do func() error) error {
			if happened {
				if err := do(); err != nil {
					return err
				}
			}
			return models.Errorf(code, "as the test wants")
		})
	}
}

func (s *shaky) set(change func(*shaky)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(s)
}

// world is a tenant with one environment and one worker, behind a loop that decides.
type world struct {
	*testing.T
	store   *shaky
	loop    *Loop
	stop    func() // ends the loop as SIGTERM does, and waits for it
	tenant  int32
	env     int32
	worker  models.ID
	session models.ID
}

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

// runs starts a loop over store.
func runs(t *testing.T, store engine.Store, o Options) (*Loop, func()) {
	if o.Logger == nil {
		o.Logger = quiet()
	}
	l := New(store, o)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); _ = l.Run(ctx) }()
	stop := func() { cancel(); <-done }
	t.Cleanup(stop)
	return l, stop
}

func newWorld(t *testing.T, o Options) *world {
	w := &world{T: t, store: newShaky()}
	if o.Address == "" {
		o.Address = "https://one"
	}
	w.loop, w.stop = runs(t, w.store, o)
	w.furnish(w.loop)
	return w
}

// furnish makes the tenant, the environment and the worker.
func (w *world) furnish(door engine.Door) {
	w.Helper()
	awaitBrain(w.T, w.loop)
	tenant := w.must(door, &engine.Command{Configure: &engine.Configure{
		New: true, Action: "tenant.create",
		Tenant: &models.Tenant{ID: newID(), Slug: "acme", Name: "Acme", Weight: 1, Timezone: "UTC"},
	}})
	w.tenant = tenant.Tenant.Number
	env := w.must(door, &engine.Command{Configure: &engine.Configure{
		New: true, Action: "environment.create",
		Environment: &models.Environment{ID: newID(), Tenant: w.tenant, Name: "night", Kind: "production"},
	}})
	w.env = env.Environment.Env
	w.worker, w.session = w.register(door, "one")
}

func (w *world) register(door engine.Door, name string) (worker, session models.ID) {
	w.Helper()
	a := w.must(door, &engine.Command{Register: &engine.Register{Worker: models.Worker{
		ID: newID(), Session: newID(), Name: name,
		Instance: name, Pool: "cpu", CPUMilli: 64_000, MemoryMB: 64_000, Slots: 1000, LeaseSeconds: 30,
	}}})
	return a.Worker.ID, a.Worker.Session
}

func awaitBrain(t *testing.T, l *Loop) {
	t.Helper()
	for began := time.Now(); !l.Role().Brain; {
		if time.Since(began) > 30*time.Second {
			t.Fatalf("nobody decides: %+v", l.Role())
		}
		time.Sleep(time.Millisecond)
	}
}

func (w *world) must(door engine.Door, cmd *engine.Command) *engine.Answer {
	w.Helper()
	a, err := w.do(door, cmd)
	if err != nil {
		w.Fatalf("%+v: %v", cmd, err)
	}
	return a
}

func (w *world) do(door engine.Door, cmd *engine.Command) (*engine.Answer, error) {
	if cmd.ID.IsZero() {
		cmd.ID = newID()
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	return door.Do(ctx, cmd)
}

// task is one task to make.
func (w *world) task(payload string) *engine.Command {
	return &engine.Command{ID: newID(), Tenant: w.tenant, Submit: &engine.Submit{Env: w.env, Tasks: []engine.NewTask{{
		ID: newID(), Class: models.Class{Type: "text.embed", CPUMilli: 1}, MaxAttempts: 3, Input: json.RawMessage(`{"type":"text.embed"}`),
		Payload: json.RawMessage(payload),
	}}}}
}

func (w *world) claim(most int, wait time.Duration) *engine.Command {
	return &engine.Command{ID: newID(), Claim: &engine.Claim{Worker: w.worker, Session: w.session, Most: int32(most), WaitMS: wait.Milliseconds()}}
}

// stands is the state of a task in the store.
func (w *world) stands(submit *engine.Command) string {
	row, ok := w.store.Task(models.TaskRef{Env: w.env, ID: submit.Submit.Tasks[0].ID})
	if !ok {
		return "absent"
	}
	return row.State.String()
}

func (w *world) look() *engine.Command {
	return &engine.Command{ID: newID(), Look: &engine.Look{Stats: true}}
}

// held is how many claims the engine holds.
func (w *world) held() int64 {
	w.Helper()
	return w.must(w.loop, w.look()).Looked.Stats.Claims
}

// told is what a caller was told: the code of the error, or "done".
func told(err error) string {
	if err == nil {
		return "done"
	}
	return string(models.CodeOf(err))
}

func payloadOf(i int) string { return fmt.Sprintf(`{"n":%d}`, i) }
