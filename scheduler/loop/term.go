package loop

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"time"

	"nightshift/models"
	"nightshift/scheduler/engine"
)

// term is one time of being the brain. One goroutine runs it; nothing of it is shared.
type term struct {
	*Loop
	engine    *engine.Engine
	epoch     int64
	batch     int64          // the last committed
	renewedAt models.Instant // by the brain before, the last time
	stale     bool           // the board must be rebuilt before the next decision
	alone     bool           // a batch that failed is run one command a transaction

	proven   time.Time // when the last acknowledged renewal or commit was sent
	now      models.Instant
	nowAt    time.Time // when now was read
	renew    time.Time // when the next renewal is due, and so on
	tick     time.Time
	ticked   time.Time // the last one
	reload   time.Time // no rebuild before this, after one has failed
	sample   time.Time
	failures int           // of ticks, in a row
	pause    time.Duration // before the next batch: the database did not take the last; 0: it did

	parked  map[*engine.Command]*call // claims the engine holds
	alarmed map[string]alarmed
}

// ofTerm gives each term a seed of its own: no two engines of a process draw the same tokens.
func ofTerm(c engine.Config, epoch int64) engine.Config {
	c.Seed = sha256.Sum256(binary.BigEndian.AppendUint64(c.Seed[:], uint64(epoch)))
	return c
}

func newTerm(l *Loop, epoch int64, seen models.Brain) *term {
	at := time.Now()
	t := &term{
		Loop: l, engine: engine.New(ofTerm(l.options.Engine, epoch)), epoch: epoch, batch: seen.Batch, renewedAt: seen.RenewedAt, stale: true,
		proven: at, renew: at.Add(renewEvery), tick: at, sample: at, parked: map[*engine.Command]*call{},
		alarmed: map[string]alarmed{},
	}
	l.figures.count(func(f *Figures) { f.Takeovers++ })
	return t
}

// run decides until another brain has taken over (the error says so) or ctx ends; then it hands over.
func (t *term) run(ctx context.Context) error {
	for ctx.Err() == nil {
		if err := t.beat(); err != nil {
			return err
		}
		if t.stale {
			if err := t.rebuild(); err != nil {
				t.refuse(t.inbox.take(), noDatabase())
				t.rest(ctx, retryEvery)
				continue
			}
			t.setRole(func(r *Role) { r.Brain, r.Epoch, r.Address = true, t.epoch, t.options.Address })
			t.inbox.open()
		}
		batch := t.next()
		if len(batch) == 0 {
			t.rest(ctx, t.idle())
			continue
		}
		if err := t.process(batch); err != nil {
			return err
		}
		t.breathe(ctx)
		t.refill()
	}
	return t.handOver()
}

// next is the batch to run now, with a Tick when time alone has something to do.
func (t *term) next() []*call {
	batch := t.inbox.take()
	if time.Until(t.tick) <= 0 || t.engine.Busy() && t.failures == 0 || t.due() {
		t.ticked = time.Now()
		t.tick = t.ticked.Add(tickEvery)
		batch = append(batch, newCall(&engine.Command{ID: newID(), Actor: t.self(), Tick: &engine.Tick{}}))
	}
	if len(batch) > 0 && time.Until(t.sample) <= 0 {
		t.sample = time.Now().Add(sampleEvery)
		batch = append(batch, t.sampling())
	}
	return batch
}

// due says whether a timer of the board has come, by the database's clock as it should stand now.
func (t *term) due() bool {
	return t.failures == 0 && t.clock() >= t.engine.NextWake() && time.Since(t.ticked) >= tickApart
}

func (t *term) clock() models.Instant { return t.now.Add(time.Since(t.nowAt)) }

// idle is how long nothing is due.
func (t *term) idle() time.Duration {
	wait := min(time.Until(t.renew), time.Until(t.tick))
	if t.failures == 0 {
		wait = min(wait, max(t.engine.NextWake().Sub(t.clock()), tickApart))
	}
	return wait
}

// rest waits for a command, at most d.
func (t *term) rest(ctx context.Context, d time.Duration) {
	if d <= 0 {
		return
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	case <-t.inbox.ready:
	}
}

// breathe waits where the database did not take the last batch, each time longer: one that has just come back, or that
// others use, is not flooded with new connections.
func (t *term) breathe(ctx context.Context) {
	if t.pause == 0 {
		return
	}
	timer := time.NewTimer(t.pause)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

// beat renews the brain row when that is due. A failure other than a lost fence is tried again soon: until another
// replica takes over, this one is the brain.
func (t *term) beat() error {
	if time.Until(t.renew) > 0 {
		return nil
	}
	sent := time.Now()
	err := t.do(storeLimit, func(ctx context.Context) error { return t.store.Renew(ctx, t.epoch) })
	switch {
	case err == nil:
		t.proven, t.renew = sent, time.Now().Add(renewEvery)
	case lost(err):
		return err
	default:
		t.renew = time.Now().Add(retryEvery)
		t.log.Warn("the brain row could not be renewed", "epoch", t.epoch, "error", err)
	}
	return nil
}

func (t *term) handOver() error {
	t.inbox.close(notYet())
	err := t.do(handLimit, func(ctx context.Context) error { return t.store.HandOver(ctx, t.epoch) })
	if err == nil {
		t.log.Info("the brain is handed over", "epoch", t.epoch, "batch", t.batch)
	}
	return err
}

// forsake answers the claims that still wait: whoever is the brain next takes them again.
func (t *term) forsake() {
	for _, c := range t.parked {
		c.finish(outcome{err: notYet()})
	}
	clear(t.parked)
	t.countParked()
}

func (t *term) countParked() {
	t.figures.count(func(f *Figures) { f.Parked = len(t.parked) })
}

// sampling asks the engine for its own figures.
func (t *term) sampling() *call {
	c := newCall(&engine.Command{ID: newID(), Actor: t.self(), Look: &engine.Look{Stats: true}})
	c.took = func(a *engine.Answer) {
		if a != nil && a.Looked != nil {
			t.figures.count(func(f *Figures) { f.Board = a.Looked.Stats })
		}
	}
	return c
}

func (t *term) self() models.Actor { return models.Actor{Kind: "brain", ID: t.options.Address} }

// do calls the store with a limit of time, whatever became of the caller: what is begun is brought to an end.
func (t *term) do(limit time.Duration, call func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	return call(ctx)
}

func lost(err error) bool { return models.CodeOf(err) == models.FenceLost }
