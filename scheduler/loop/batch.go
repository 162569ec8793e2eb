package loop

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"nightshift/models"
	"nightshift/scheduler/engine"
)

// panicked is a verb that panicked.
type panicked struct {
	value any
	stack []byte
}

func (p *panicked) Error() string { return fmt.Sprintf("a verb panicked: %v", p.value) }

// guard turns a panic of the engine into an error.
func guard(verb func()) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &panicked{value: v, stack: debug.Stack()}
		}
	}()
	verb()
	return nil
}

// attempt runs a batch once: facts, decision, one transaction, effects, answers. After an error nothing was answered,
// and unless the facts failed, the board no longer says what the database does.
func (t *term) attempt(batch []*call) (decided []engine.Reply, err error) {
	cmds := make([]*engine.Command, len(batch))
	for i, c := range batch {
		cmds[i] = c.cmd
	}
	facts, err := t.facts(cmds)
	if err != nil {
		return nil, err
	}
	t.clocks(cmds, facts.Now)

	t.stale = true // until the engine knows what became of its decision
	var plan *models.Plan
	err = guard(func() {
		if t.options.failpoint != nil {
			t.options.failpoint(cmds)
		}
		plan, decided = t.engine.Decide(t.batch+1, t.epoch, facts, cmds)
	})
	if err != nil {
		return nil, err
	}
	effects, sent := &models.Effects{}, time.Now()
	if !plan.Empty() {
		err = t.do(storeLimit, func(ctx context.Context) (err error) {
			effects, err = t.store.Apply(ctx, plan)
			return err
		})
		if err != nil {
			return decided, err
		}
		t.batch++
		t.proven = sent
		t.figures.committed(len(batch), time.Since(sent))
		t.heard(t.batch)
	} else if err := t.prove(); err != nil {
		return nil, err
	}
	t.answer(batch, decided)
	return nil, t.commit(batch, effects)
}

// prove makes sure, before something is answered that no commit proves, that this is still the brain.
func (t *term) prove() error {
	if time.Since(t.proven) <= freshFor {
		return nil
	}
	t.renew = time.Time{}
	if err := t.beat(); err != nil {
		return err
	}
	if time.Since(t.proven) > freshFor {
		return refusal(models.Unavailable, "this replica can't say at the moment whether it still decides")
	}
	return nil
}

// facts reads what the batch needs.
func (t *term) facts(cmds []*engine.Command) (facts *models.Facts, err error) {
	var need *models.Need
	if err := guard(func() { need = t.engine.Need(cmds) }); err != nil {
		return nil, err
	}
	err = t.do(storeLimit, func(ctx context.Context) (err error) {
		facts, err = t.store.Facts(ctx, need)
		return err
	})
	return facts, err
}

// clocks notes the database's clock and sets until when new claims wait.
func (t *term) clocks(cmds []*engine.Command, now models.Instant) {
	t.now, t.nowAt = now, time.Now()
	for _, cmd := range cmds {
		if c := cmd.Claim; c != nil && c.Until == 0 && c.WaitMS > 0 {
			c.Until = now.Add(time.Duration(c.WaitMS) * time.Millisecond)
		}
	}
}

// commit lets the effects enter the board. The batch stands by then: what fails here costs a rebuild, never an answer.
func (t *term) commit(batch []*call, effects *models.Effects) error {
	var more []engine.Reply
	if err := guard(func() { more = t.engine.Commit(effects) }); err != nil {
		t.alarm("the effects of a batch could not enter the board", err)
		return nil
	}
	t.stale, t.pause = false, 0
	t.tellAside()
	t.answer(batch, more)
	t.park(batch)
	return nil
}

// answer hands replies out: to commands of the batch and to claims parked by an earlier one.
func (t *term) answer(batch []*call, replies []engine.Reply) {
	if len(replies) == 0 {
		return
	}
	of := make(map[*engine.Command]*call, len(batch))
	for _, c := range batch {
		of[c.cmd] = c
	}
	for i := range replies {
		r := &replies[i]
		c := of[r.To]
		if c == nil {
			c = t.parked[r.To]
		}
		delete(t.parked, r.To)
		if c != nil && c.finish(outcome{answer: r.Answer, err: r.Err}) {
			continue
		}
		if back := tokens(r.Answer); len(back) > 0 { // its caller has left
			t.giveBack(r.To.Tenant, back)
		}
	}
}

// park keeps the claims of a batch that the engine has not answered, and forgets those it was told to take off.
func (t *term) park(batch []*call) {
	for _, c := range batch {
		switch {
		case c.drops != nil:
			delete(t.parked, c.drops.cmd)
		case c.order == claims && !c.answered():
			t.parked[c.cmd] = c
		}
		if r := c.cmd.Return; r != nil && !r.Claim.IsZero() && c.drops == nil {
			t.takeOff(r.Claim)
		}
		if c.cmd.Tick != nil {
			t.failures = 0
		}
	}
	t.figures.count(func(f *Figures) { f.Commands += uint64(len(batch)); f.Parked = len(t.parked) })
}

// takeOff forgets a parked claim that another replica has returned by its id.
func (t *term) takeOff(id models.ID) {
	for cmd, c := range t.parked {
		if cmd.ID == id {
			delete(t.parked, cmd)
			c.finish(outcome{answer: &engine.Answer{Claimed: &engine.Claimed{}}})
		}
	}
}

// refill brings rows the board wants, between two transactions. A failure costs a rebuild.
func (t *term) refill() {
	if t.stale {
		return
	}
	var ask *models.RefillAsk
	if err := guard(func() { ask = t.engine.Asks() }); err != nil {
		t.stale = true
		t.alarm("the board could not say what it wants", err)
		return
	}
	if ask == nil {
		return
	}
	var got *models.Refill
	err := t.do(storeLimit, func(ctx context.Context) (err error) {
		got, err = t.store.Refill(ctx, ask)
		return err
	})
	if err == nil {
		err = guard(func() { t.engine.Refilled(ask, got) })
	}
	if err != nil {
		t.stale = true
		t.alarm("the board could not be refilled", err)
	}
}

// rebuild reads the board anew. The engine forgets its parked claims with it: a decision that failed may have answered
// some without anybody hearing of it. So they are asked again.
func (t *term) rebuild() error {
	if time.Until(t.reload) > 0 {
		return noDatabase()
	}
	began := time.Now()
	heads, most := t.options.Engine.Heads, t.options.Engine.MostEntries
	var snapshot *models.Snapshot
	err := t.do(loadLimit, func(ctx context.Context) (err error) {
		snapshot, err = t.store.Load(ctx, heads, most)
		return err
	})
	if err == nil {
		snapshot.DecidedAt = max(snapshot.DecidedAt, t.renewedAt)
		err = guard(func() { t.engine.Rebuild(snapshot) })
	}
	if err != nil {
		t.alarm("the board could not be rebuilt", err)
		t.reload = time.Now().Add(retryEvery)
		return err
	}
	t.stale, t.batch, t.now, t.nowAt = false, snapshot.Batch, snapshot.Now, time.Now()
	t.checkHistory(snapshot.Batch)
	for _, c := range t.parked {
		t.inbox.again(c)
	}
	clear(t.parked)
	t.figures.count(func(f *Figures) {
		f.Rebuilds++
		f.Parked = 0
		f.RebuildSeconds.observe(time.Since(began).Seconds())
	})
	return nil
}

// checkHistory raises an alert when the database knows fewer batches than this replica has heard of: a promotion has lost
// acknowledged history.
func (t *term) checkHistory(batch int64) {
	before := t.Role().Batch
	if batch < before {
		t.log.Error("acknowledged history is lost", "alert", "history_lost", "first", batch+1, "last", before)
		t.figures.count(func(f *Figures) { f.HistoryLost++ })
		t.commits.restart(batch)
	}
	t.setRole(func(r *Role) { r.Batch = batch })
}

// alarm says what should not happen, each thing at most once a second: while the database is away every batch fails alike.
func (t *term) alarm(what string, err error) {
	now := time.Now()
	if now.Sub(t.alarmed[what].at) < time.Second {
		t.alarmed[what] = alarmed{at: t.alarmed[what].at, quiet: t.alarmed[what].quiet + 1}
		return
	}
	quiet := t.alarmed[what].quiet
	t.alarmed[what] = alarmed{at: now}
	fields := []any{"epoch", t.epoch, "batch", t.batch, "error", err}
	if quiet > 0 {
		fields = append(fields, "unsaid", quiet)
	}
	if p := (*panicked)(nil); errors.As(err, &p) {
		fields = append(fields, "stack", string(p.stack))
	}
	t.log.Error(what, fields...)
}

// alarmed is when something was last said, and how often it has been left unsaid since.
type alarmed struct {
	at    time.Time
	quiet int
}
