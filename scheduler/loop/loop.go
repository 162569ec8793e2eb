package loop

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"sync"
	"time"

	"nightshift/models"
	"nightshift/scheduler/engine"
)

// Options say how a loop runs. Address is where other replicas reach this one; the rest has defaults.
type Options struct {
	Address string
	Seed    [32]byte // of the engine's random choices
	Logger  *slog.Logger
	Limits  Limits
	Engine  engine.Config // Heads, MostEntries, Slice; Seed and Address are filled in

	// failpoint runs before each decision; tests of this package make verbs panic with it.
	failpoint func([]*engine.Command)
}

// Loop is one replica's part in deciding: standing by, or being the brain. It is an engine.Door.
type Loop struct {
	store   engine.Store
	options Options
	log     *slog.Logger
	inbox   *inbox
	figures figures
	commits commits
	twin    int64 // the epoch of a brain under this replica's address that was told of; Run's alone
	behind  int64 // the step of the schema that this replica was last told it does not know

	mu   sync.Mutex
	role Role
}

var _ engine.Door = (*Loop)(nil)

// Role is what this replica knows of who decides.
type Role struct {
	Brain   bool // this replica is it
	Epoch   int64
	Batch   int64  // the last committed one it has heard of
	Address string // of the brain; empty while nobody is
}

// New makes a loop over a store. It does nothing until Run.
func New(store engine.Store, o Options) *Loop {
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	if o.Limits == (Limits{}) {
		o.Limits = DefaultLimits
	}
	if o.Seed == ([32]byte{}) {
		_, _ = rand.Read(o.Seed[:]) // never fails
	}
	o.Engine.Seed, o.Engine.Address = o.Seed, o.Address
	o.Engine.Heads = cmp.Or(o.Engine.Heads, defaultHeads)
	o.Engine.MostEntries = cmp.Or(o.Engine.MostEntries, defaultMost)
	o.Engine.Slice = cmp.Or(o.Engine.Slice, defaultSlice)
	return &Loop{
		store: store, options: o, log: o.Logger, inbox: newInbox(o.Limits, notYet()),
		figures: figures{Figures: noFigures()}, commits: commits{listeners: map[chan int64]struct{}{}},
	}
}

// Run stands by, decides while this is the brain, and stands by again, until ctx ends. Then it hands the brain over.
func (l *Loop) Run(ctx context.Context) error {
	var mine int64 // the last epoch in which this replica was the brain
	for ctx.Err() == nil {
		epoch, seen, err := l.standBy(ctx, mine)
		if err != nil {
			break // only the end of ctx ends standing by
		}
		t := newTerm(l, epoch, seen)
		err = t.run(ctx)
		mine = t.epoch
		l.inbox.close(notYet())
		t.forsake()
		l.setRole(func(r *Role) { r.Brain, r.Address = false, "" })
		if err != nil {
			l.log.Warn("the brain has stepped down", "epoch", t.epoch, "batch", t.batch, "error", err)
		}
	}
	l.inbox.close(refusal(models.Unavailable, "this replica is stopping"))
	return nil
}

// Do answers a command once what it changed is committed. While another replica is the brain, it refuses with Unavailable
// and Role says who it is.
func (l *Loop) Do(ctx context.Context, cmd *engine.Command) (*engine.Answer, error) {
	c := newCall(owned(cmd))
	if err := l.inbox.put(c); err != nil {
		l.figures.refused(models.CodeOf(err))
		return nil, err
	}
	select {
	case o := <-c.done:
		return o.answer, o.err
	case <-ctx.Done():
	}
	o, finished := c.leave()
	switch back := tokens(o.answer); {
	case len(back) > 0:
		l.giveBack(cmd.Tenant, back)
	case finished:
		return o.answer, o.err
	case c.order == claims:
		l.post(&engine.Command{Tenant: cmd.Tenant, Return: &engine.Return{Claim: c.cmd.ID}}, c)
	}
	return nil, gone(ctx)
}

// owned copies what the loop itself fills in, so that a caller who has left may use its command again.
func owned(cmd *engine.Command) *engine.Command {
	c := *cmd
	if c.Claim != nil {
		claim := *c.Claim
		c.Claim = &claim
	}
	return &c
}

// giveBack returns leases that could not be delivered.
func (l *Loop) giveBack(tenant int32, back []models.ID) {
	l.post(&engine.Command{Tenant: tenant, Return: &engine.Return{Tokens: back}}, nil)
}

// post asks something nobody waits for. When it can't be taken, the brain has changed or is flooded, and the beats of the
// worker, in which the leases are missing, say the same later.
func (l *Loop) post(cmd *engine.Command, drops *call) {
	cmd.ID, cmd.Actor = newID(), models.Actor{Kind: "brain", ID: l.options.Address}
	c := newCall(cmd)
	c.drops = drops
	if err := l.inbox.put(c); err != nil {
		l.log.Debug("leases could not be returned", "error", err)
	}
}

// Role says whether this replica is the brain, and who is.
func (l *Loop) Role() Role {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.role
}

func (l *Loop) setRole(change func(*Role)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	change(&l.role)
}

// heard notes a committed batch and tells who listens.
func (l *Loop) heard(batch int64) {
	l.setRole(func(r *Role) { r.Batch = max(r.Batch, batch) })
	l.commits.tell(batch)
}

func notYet() *models.Error {
	return refusal(models.Unavailable, "this replica does not decide at the moment")
}

func gone(ctx context.Context) error {
	cause := context.Cause(ctx)
	if errors.Is(cause, context.DeadlineExceeded) {
		return models.Errorf(models.Unavailable, "no answer in time: %w", cause)
	}
	return models.Errorf(models.Unavailable, "the caller has gone: %w", cause)
}

func newID() models.ID {
	var entropy [10]byte
	_, _ = rand.Read(entropy[:]) // never fails
	return models.NewID(models.InstantOf(time.Now()), entropy)
}
