package sim

import (
	"context"

	"nightshift/models"
	"nightshift/scheduler/engine"
)

// mostCommands is how many commands a batch takes.
const mostCommands = 1_000

// decide runs batches until nothing is left to decide at this moment.
func (w *World) decide() {
	for len(w.inbox) > 0 || w.engine.Busy() || w.due() {
		n := min(len(w.inbox), mostCommands)
		batch := append([]*engine.Command(nil), w.inbox[:n]...)
		w.inbox = w.inbox[n:]
		if w.due() || w.engine.Busy() {
			batch = append(batch, &engine.Command{ID: w.id(), Tick: &engine.Tick{}})
			w.ticked = w.now
		}
		w.turn(batch)
	}
	w.wake()
	if w.scenario.Conserving {
		w.conserving()
	}
}

func (w *World) due() bool {
	next := w.engine.NextWake()
	return next != 0 && next <= w.now && w.now >= w.ticked.Add(w.scenario.Pace)
}

// wake puts the engine's next moment on the agenda.
func (w *World) wake() {
	next := w.engine.NextWake()
	if next == 0 || next == models.Forever || next == w.watch.wakes && len(w.agenda) > 0 {
		return
	}
	w.watch.wakes = next
	next = max(next, w.ticked.Add(w.scenario.Pace))
	w.after(max(next.Sub(w.now), latency), func() {})
}

// turn gives the engine a batch and follows the rules of failure until the batch has its end.
func (w *World) turn(commands []*engine.Command) {
	ctx := context.Background()
	facts, err := w.store.Facts(ctx, w.engine.Need(commands))
	if err != nil {
		panic(err) // memory is always there
	}
	plan, replies := w.engine.Decide(w.batch+1, w.epoch, facts, commands)
	effects := &models.Effects{}
	if !plan.Empty() {
		w.spoil()
		if effects, err = w.store.Apply(ctx, plan); err != nil {
			w.failed(commands, plan, replies, err)
			return
		}
		w.batch++
		w.watched(plan)
	}
	w.answer(replies)
	w.answer(w.engine.Commit(effects))
	w.park(commands)
	if ask := w.engine.Asks(); ask != nil {
		refill, err := w.store.Refill(ctx, ask)
		if err != nil {
			panic(err)
		}
		w.engine.Refilled(ask, refill)
	}
}

// failed rebuilds the board and runs the batch again, or finds out that it happened.
func (w *World) failed(commands []*engine.Command, plan *models.Plan, replies []engine.Reply, err error) {
	w.result.Counters["failed_batches"]++
	code := models.CodeOf(err)
	w.note("batch %d: %s", w.batch+1, code)
	if code == models.Unclear {
		happened, next, err := w.store.Recover(context.Background(), w.epoch, w.batch+1)
		if err != nil {
			panic(err) // nobody else decides here
		}
		w.epoch = next
		if happened {
			w.watched(plan)
			w.answer(replies)
			w.park(commands)
			commands = nil
		}
	}
	w.rebuild()
	if code == models.BadData || code == models.RowCount {
		w.violate("a batch failed: %v", err)
		if len(commands) == 1 {
			w.answer([]engine.Reply{{To: commands[0], Err: err}})
			commands = nil
		}
		for _, c := range commands {
			w.turn([]*engine.Command{c})
		}
		commands = nil
	}
	w.again(commands)
}

// rebuild reads the board anew.
func (w *World) rebuild() {
	heads, most := w.engine.Limits()
	snapshot, err := w.store.Load(context.Background(), heads, most)
	if err != nil {
		panic(err)
	}
	w.batch = snapshot.Batch
	w.engine.Rebuild(snapshot)
	w.result.Counters["rebuilds"]++
}

// again asks what was not answered. Claims that were parked are taken off and asked anew: a decision that nobody heard
// of may have answered them.
func (w *World) again(commands []*engine.Command) {
	var anew []*engine.Command
	for _, c := range w.parked {
		claim := *c.Claim
		on := &engine.Command{ID: w.id(), Claim: &claim}
		w.waits[on.ID] = w.waits[c.ID]
		delete(w.waits, c.ID)
		commands = append(commands, &engine.Command{ID: w.id(), Return: &engine.Return{Claim: c.ID}})
		anew = append(anew, on)
	}
	w.parked = nil
	if commands = append(commands, anew...); len(commands) > 0 {
		w.turn(commands)
	}
}

// takeOver lets another brain decide.
func (w *World) takeOver() {
	ctx := context.Background()
	seen, err := w.store.Brain(ctx)
	if err == nil {
		w.epoch, err = w.store.TakeOver(ctx, seen, w.config.Address)
	}
	if err != nil {
		panic(err)
	}
	w.counted()
	w.engine = engine.New(w.configuration())
	w.rebuild()
	w.note("epoch %d", w.epoch)
	w.again(nil)
}

// configuration is the engine's for this brain: no two draw the same tokens.
func (w *World) configuration() engine.Config {
	config := w.config
	config.Seed[31] = byte(w.epoch)
	return config
}

// counted keeps what the engine has counted before another takes its place.
func (w *World) counted() {
	board := w.engine.Board().Counted
	for what, n := range map[string]int64{ // any order: sums
		"refills": board.Refills, "shrinks": board.Shrinks, "parkings": board.Parkings, "unparkings": board.Unparkings,
	} {
		w.result.Counters[what] += n
	}
}

// spoil asks the store to fail the next commit, as often as the scenario says.
func (w *World) spoil() {
	f := w.scenario.Faults
	if f.FailedApplies+f.UnclearApplies == 0 {
		return
	}
	switch n := w.rng.IntN(1000); {
	case n < f.FailedApplies:
		w.store.FailNext(models.Rollback, false)
	case n < f.FailedApplies+f.UnclearApplies:
		w.store.FailNext(models.Unclear, n%2 == 0)
	}
}

func (w *World) answer(replies []engine.Reply) {
	for _, r := range replies {
		then := w.waits[r.To.ID]
		if then == nil {
			continue
		}
		delete(w.waits, r.To.ID)
		for i, c := range w.parked {
			if c.ID == r.To.ID {
				w.parked = append(w.parked[:i:i], w.parked[i+1:]...)
				break
			}
		}
		then(r.Answer, r.Err)
	}
}

// park keeps the claims of a batch that wait for their answer.
func (w *World) park(commands []*engine.Command) {
	for _, c := range commands {
		if c.Claim != nil && w.waits[c.ID] != nil {
			w.parked = append(w.parked, c)
		}
	}
}
