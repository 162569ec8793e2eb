package loop

import (
	"context"
	"errors"
	"time"

	"nightshift/models"
	"nightshift/scheduler/engine"
)

// process runs a batch to its end: every command of it is answered, parked or put back. The error is only ever the loss
// of the brain.
func (t *term) process(batch []*call) error {
	for try := 1; ; try++ {
		decided, err := t.attempt(batch)
		if err == nil {
			return nil
		}
		batch, err = t.rule(batch, decided, err, try)
		if err != nil || len(batch) == 0 {
			return err
		}
		if err := t.again(batch); err != nil {
			return err
		}
		if t.stale {
			return nil // the database does not answer; all was said
		}
	}
}

// rule says what a failed batch leaves to be tried again, by the kind of failure.
func (t *term) rule(batch []*call, decided []engine.Reply, err error, try int) ([]*call, error) {
	switch codeOf(err) {
	case models.FenceLost:
		t.refuse(batch, notYet())
		return nil, err
	case models.Unclear:
		return t.unclear(batch, decided, err, try)
	case models.RowCount:
		t.log.Error("a row count differs from the plan's", "alert", "counter_drift", "epoch", t.epoch, "batch", t.batch+1, "error", err)
		t.figures.count(func(f *Figures) { f.CounterDrift++ })
		if len(batch) > 1 {
			return nil, t.oneByOne(batch)
		}
	case models.BadData:
		if !t.alone {
			t.alarm("a command broke its batch; each is run alone now", err)
			return nil, t.oneByOne(batch)
		}
		t.convict(batch[0], err)
		return nil, nil
	case models.Rollback:
		t.engine.Failed(false)
		t.log.Warn("a batch was rolled back", "batch", t.batch+1, "try", try, "error", err)
	default: // Unavailable, or what no rule knows: the brain stays, the callers may come again
		t.alarm("a batch failed", err)
		t.refuse(batch, noDatabase())
		t.pause = min(max(2*t.pause, retryFirst), retryEvery)
		return nil, nil
	}
	if try >= tries {
		t.giveUp(batch, err)
		return nil, nil
	}
	return batch, nil
}

// codeOf is the code whose rule holds: a verb that panicked is treated like data that broke the batch.
func codeOf(err error) models.Code {
	if verb := (*panicked)(nil); errors.As(err, &verb) {
		return models.BadData
	}
	return models.CodeOf(err)
}

// again prepares another try: the board is rebuilt. Where that fails, the batch is refused.
func (t *term) again(batch []*call) error {
	if err := t.beat(); err != nil {
		t.refuse(batch, notYet())
		return err
	}
	if !t.stale {
		return nil
	}
	if err := t.rebuild(); err != nil {
		t.refuse(batch, noDatabase())
	}
	return nil
}

// oneByOne runs the commands of a batch in a transaction each. What the engine has to do of its own goes first, so that
// no command is blamed for it.
func (t *term) oneByOne(batch []*call) error {
	t.alone = true
	defer func() { t.alone = false }()
	if err := t.again(batch); err != nil || t.stale {
		return err
	}
	if works, err := t.own(); !works || err != nil {
		t.refuse(batch, refusal(models.Unavailable, "the scheduler can't go on with its own work"))
		return err
	}
	t.engine.Alone(true) // what it has to do waits: a command that fails fails by itself
	defer t.engine.Alone(false)
	for i, c := range batch {
		err := t.again(batch[i:])
		if err != nil || t.stale {
			return err
		}
		if err := t.process([]*call{c}); err != nil {
			t.refuse(batch[i+1:], notYet())
			return err
		}
	}
	return nil
}

// own runs a batch without commands; false when that can't be done, not even with what fails left out.
func (t *term) own() (works bool, err error) {
	for {
		decided, err := t.attempt(nil)
		if err == nil {
			return true, nil
		}
		if codeOf(err) != models.BadData {
			_, err = t.rule(nil, decided, err, tries)
			return true, err
		}
		t.alarm("the engine's own work can't be done", err)
		if !t.engine.Failed(true) {
			t.figures.count(func(f *Figures) { f.OwnWork++ })
			return false, nil
		}
		if err := t.again(nil); err != nil || t.stale {
			return false, err
		}
	}
}

// convict answers the one command that can't be done, and gives its tenant batches of its own.
func (t *term) convict(c *call, err error) {
	if c.cmd.Tick != nil {
		t.tickFailed(err)
		return
	}
	t.figures.count(func(f *Figures) { f.Culprits++ })
	t.inbox.isolate(c.cmd.Tenant)
	t.log.Error("a command can't be done", "command", c.cmd.ID.Text("cmd"), "tenant", c.cmd.Tenant, "actor", c.cmd.Actor.ID,
		"request", c.cmd.Actor.RequestID, "error", err)
	if verb := (*panicked)(nil); errors.As(err, &verb) {
		t.alarm("a verb panicked", verb)
		c.finish(outcome{err: models.Errorf(models.Internal, "this command could not be decided; the others were")})
		return
	}
	c.finish(outcome{err: models.Errorf(models.ValidationFailed, "the database can't hold what this asks: %s", refusedFor(err))})
}

// refusedFor says why a store refused a value, in words that tell nothing of its statements: those are in the log.
func refusedFor(err error) string {
	var of interface{ SQLState() string }
	if !errors.As(err, &of) {
		return "it refuses a value"
	}
	switch state := of.SQLState(); state {
	case "22021", "22P05":
		return "a text holds a character that it can't hold"
	case "22003", "22008":
		return "a number or a moment is out of its range"
	case "54000":
		return "a value is too large"
	default:
		return "it refuses a value with SQLSTATE " + state
	}
}

// giveUp answers a batch that failed too often.
func (t *term) giveUp(batch []*call, err error) {
	t.alarm("a batch failed too often", err)
	for _, c := range batch {
		if c.cmd.Tick != nil && (!overdue(err) || t.engine.Least()) {
			t.tickFailed(err)
		}
	}
	if models.CodeOf(err) == models.RowCount {
		t.refuse(batch, models.Errorf(models.Internal, "the rows this changes are not as the brain knows them"))
		return
	}
	t.refuse(batch, refusal(models.Unavailable, "the database rolled this back again and again"))
}

// tickFailed counts; the third failure in a row sets ticks aside for a while, so that commands go on.
func (t *term) tickFailed(err error) {
	t.failures++
	if t.failures < tries {
		t.alarm("a tick failed", err)
		return
	}
	t.failures, t.tick = 1, time.Now().Add(tickAside) // one: no timer may bring it back early
	t.figures.count(func(f *Figures) { f.TicksAside++ })
	t.log.Error("ticks are set aside", "alert", "tick_set_aside", "for", tickAside, "error", err)
}

// overdue says that a batch failed for lack of time, as far as anybody knows: the next one does less.
func overdue(err error) bool {
	code := models.CodeOf(err)
	return code == models.Rollback || code == models.Unclear
}

// tellAside tells of the schedules that the engine has set aside.
func (t *term) tellAside() {
	for _, ref := range t.engine.SetAside() {
		t.figures.count(func(f *Figures) { f.SchedulesAside++ })
		t.log.Error("a schedule is set aside: its occurrence can't be made, alone", "alert", "schedule_set_aside", "env", ref.Env,
			"schedule", ref.ID.Text(models.SchedulePrefix))
	}
}

func noDatabase() *models.Error {
	return refusal(models.Unavailable, "the database does not answer at the moment")
}

// refuse answers commands that were not done.
func (t *term) refuse(batch []*call, why error) {
	for _, c := range batch {
		c.finish(outcome{err: why})
	}
}

// unclear finds out what became of a commit whose answer was lost. If it happened, its answers go out; if not, it is tried
// again.
func (t *term) unclear(batch []*call, decided []engine.Reply, cause error, try int) ([]*call, error) {
	t.figures.count(func(f *Figures) { f.Unclear++ })
	t.log.Warn("it is not clear whether a batch was committed", "epoch", t.epoch, "batch", t.batch+1, "error", cause)
	happened, err := t.findOut()
	if err != nil && !lost(err) {
		t.refuse(batch, refusal(models.Unavailable, "the database went away during the commit; send this again to learn whether it happened"))
		return nil, err
	}
	if happened {
		t.batch++
		t.heard(t.batch)
		t.answer(batch, decided)
		batch = unanswered(batch)
	}
	if !happened {
		t.engine.Failed(false)
	}
	switch {
	case err != nil:
		t.refuse(batch, notYet())
		return nil, err
	case !happened && try >= tries:
		t.giveUp(batch, cause)
		return nil, nil
	}
	return batch, nil
}

// findOut asks the database, on a new connection, for a few seconds.
func (t *term) findOut() (happened bool, err error) {
	for began := time.Now(); ; {
		var next int64
		sent := time.Now()
		err = t.do(recoverCall, func(ctx context.Context) (err error) {
			happened, next, err = t.store.Recover(ctx, t.epoch, t.batch+1)
			return err
		})
		if err == nil {
			t.epoch, t.proven, t.renew = next, sent, time.Now().Add(renewEvery)
			t.setRole(func(r *Role) { r.Epoch = next })
			return happened, nil
		}
		if lost(err) || time.Since(began) > recoverFor {
			return happened, err
		}
		t.log.Warn("the commit can't be found out yet", "error", err)
		t.rest(context.Background(), retryEvery)
	}
}

// unanswered are the claims that a batch which happened has parked: the rebuilt board does not know that.
func unanswered(batch []*call) []*call {
	var left []*call
	for _, c := range batch {
		if c.order == claims && !c.answered() {
			left = append(left, c)
		}
	}
	return left
}
