package storetest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"nightshift/models"
	"nightshift/models/memory"
	"nightshift/scheduler/engine"
)

// Counts is what happened in a run, so that a test can see that the rare things did.
type Counts struct {
	Commands, Plans, Starts, Faults, Refusals                   int64
	Refills, Shrinks, Parkings, Unparkings                      int64
	Spends, Presumed, Held                                      int64 // of budgets; tasks that were parked for one
	Rebuilds, Takeovers, Staged, Grown, LeasesLost, DeadLetters int64
	Succeeded, Skipped, Expired, Cancelled, Flips, Slices       int64
	LanesHeld, LanesFreed                                       int64 // lanes
	SeveralKeys, Ordered, Rated                                 int64 // starts with several keys, in order, under a rate
	Labels, Watermarks, Dedupes, Signals, Judgements            int64 // rows of each at the end
	Messages, Marks, Takes                                      int64 // likewise
	Chosen, Rechosen, Unchosen, Climbed, Breakers               int64 // models at birth, anew, none, the next better one; breakers that opened
}

// Add sums two runs.
func (c *Counts) Add(o Counts) {
	for _, pair := range [][2]*int64{
		{&c.Commands, &o.Commands},
		{&c.Plans, &o.Plans},
		{&c.Starts, &o.Starts},
		{&c.Faults, &o.Faults},
		{&c.Refusals, &o.Refusals},
		{&c.Refills, &o.Refills},
		{&c.Shrinks, &o.Shrinks},
		{&c.Parkings, &o.Parkings},
		{&c.Spends, &o.Spends},
		{&c.Presumed, &o.Presumed},
		{&c.Held, &o.Held},
		{&c.Unparkings, &o.Unparkings},
		{&c.Rebuilds, &o.Rebuilds},
		{&c.Takeovers, &o.Takeovers},
		{&c.Staged, &o.Staged},
		{&c.Grown, &o.Grown},
		{&c.LeasesLost, &o.LeasesLost},
		{&c.DeadLetters, &o.DeadLetters},
		{&c.Succeeded, &o.Succeeded},
		{&c.Skipped, &o.Skipped},
		{&c.Expired, &o.Expired},
		{&c.Cancelled, &o.Cancelled},
		{&c.Flips, &o.Flips},
		{&c.Slices, &o.Slices},
		{&c.LanesHeld, &o.LanesHeld},
		{&c.LanesFreed, &o.LanesFreed},
		{&c.SeveralKeys, &o.SeveralKeys},
		{&c.Ordered, &o.Ordered},
		{&c.Rated, &o.Rated},
		{&c.Labels, &o.Labels},
		{&c.Watermarks, &o.Watermarks},
		{&c.Dedupes, &o.Dedupes},
		{&c.Signals, &o.Signals},
		{&c.Judgements, &o.Judgements},
		{&c.Messages, &o.Messages},
		{&c.Marks, &o.Marks},
		{&c.Takes, &o.Takes},
		{&c.Chosen, &o.Chosen},
		{&c.Rechosen, &o.Rechosen},
		{&c.Unchosen, &o.Unchosen},
		{&c.Climbed, &o.Climbed},
		{&c.Breakers, &o.Breakers},
	} {
		*pair[0] += *pair[1]
	}
}

// dawn is when every script begins.
const dawn = models.Instant(1_790_000_000_000_000)

// run is one script on its way.
type run struct {
	t         *testing.T
	rng       *rand.Rand
	now       models.Instant
	config    engine.Config
	sides     [2]*side
	known     known
	asked     map[models.ID]*engine.Command // that may still be answered
	dropped   map[models.ID]bool            // claims that were taken off
	ticks     map[models.ID]bool            // of the engine's own, by their ids
	parked    []*engine.Command             // claims without an answer yet, in the order they came
	gates     map[models.TaskRef]string
	states    map[models.TaskRef]models.State
	op        string
	scheduled []models.TaskRef
	counts    Counts
	keys      *KeyWatch
}

// Run tells the script of a seed to two stores and fails where they, or a board and its rebuild, differ. newStores
// makes two empty stores that live by the clock it is given. With small the board keeps so little that it must refill,
// shrink and park all the time.
func Run(t *testing.T, seed uint64, ops int, newStores func(t *testing.T, clock func() models.Instant) (a, b engine.Store), small bool) Counts {
	t.Helper()
	r := &run{
		t: t, rng: rand.New(rand.NewPCG(seed, 0x6e69676874)), now: dawn, config: configure(seed, small), asked: map[models.ID]*engine.Command{}, ticks: map[models.ID]bool{}, dropped: map[models.ID]bool{},
		known: known{itemized: map[models.ID]bool{}, modelled: map[models.ID]bool{}}, gates: map[models.TaskRef]string{}, states: map[models.TaskRef]models.State{}, op: "begin", keys: NewKeyWatch(),
	}
	a, b := newStores(t, func() models.Instant { return r.now })
	r.sides = [2]*side{{name: "first", store: a}, {name: "second", store: b}}
	for _, s := range r.sides {
		if err := s.takeOver(t.Context(), r.config); err != nil {
			t.Fatal(err)
		}
	}
	r.settle()
	r.begin()
	for i := range ops {
		r.op = fmt.Sprintf("seed %d, operation %d", seed, i)
		r.operate()
		r.settle()
		r.check()
	}
	r.op = fmt.Sprintf("seed %d, the end", seed)
	r.lastWords()
	r.compareRows()
	r.count()
	return r.counts
}

func configure(seed uint64, small bool) engine.Config {
	config := engine.Config{Heads: 4, MostEntries: 200_000, Slice: 1_000, Address: "here"}
	if small {
		config.Heads, config.MostEntries, config.Slice = 2, 20, 3
	}
	// Every other two minutes more is foreseen than there is.
	config.Peak = func(_ string, _ []models.KindName, from, _ models.Instant) float64 {
		return float64(from / 120_000_000 % 2 * 20)
	}
	for i := range 8 {
		config.Seed[i] = byte(seed >> (8 * i))
	}
	return config
}

func (r *run) ctx() context.Context { return r.t.Context() }

func (r *run) fatal(format string, args ...any) {
	r.t.Helper()
	r.t.Fatalf("%s (%s): %s", r.op, r.now.Time().Format(time.TimeOnly), fmt.Sprintf(format, args...))
}

// must is for what may not fail.
func (r *run) must(err error) {
	r.t.Helper()
	if err != nil {
		r.fatal("%v", err)
	}
}

// do sends commands in one batch and learns from the answers. Now and then the commit fails.
func (r *run) do(commands ...*engine.Command) {
	r.t.Helper()
	for _, c := range commands {
		r.asked[c.ID] = c
		r.counts.Commands++
	}
	goes := noFault
	if r.rng.IntN(20) == 0 {
		goes = failedApply + failure(r.rng.IntN(3))
	}
	r.turn(commands, goes)
}

// turn gives both sides a batch, compares what they say, and follows the rules of failure until the batch has its end.
func (r *run) turn(commands []*engine.Command, goes failure) {
	r.t.Helper()
	if r.due() {
		commands = append(commands, r.tick())
	}
	var steps [2]step
	for i, s := range r.sides {
		var err error
		if steps[i], err = s.turn(r.ctx(), commands, goes); err != nil {
			r.fatal("%s: %v", s.name, err)
		}
	}
	if steps[0].Code != steps[1].Code {
		r.fatal("one plan failed as it should not: %q %q and %q %q", steps[0].Code, steps[0].detail, steps[1].Code, steps[1].detail)
	}
	said := steps[0]
	steps[0].detail, steps[1].detail = "", ""
	if d := difference(steps[0], steps[1]); d != "" {
		r.fatal("the sides differ at %s", d)
	}
	if said.Code == "" {
		r.follow(said)
		r.park(commands)
		return
	}
	r.counts.Faults++
	r.recover(commands, said)
}

// recover follows the rule of a failure: both boards are rebuilt and the batch is run again, or found to have happened.
func (r *run) recover(commands []*engine.Command, said step) {
	r.t.Helper()
	switch said.Code {
	case models.Rollback:
	case models.Unclear:
		var happened [2]bool
		for i, s := range r.sides {
			var err error
			happened[i], err = s.recover(r.ctx())
			r.must(err)
		}
		if happened[0] != happened[1] {
			r.fatal("a batch happened on one side alone: %v", happened)
		}
		r.rebuild()
		if happened[0] { // the callers are told what was decided
			r.follow(said)
			r.park(commands)
			commands = nil
		}
		r.again(commands)
		return
	case models.BadData:
		if len(commands) == 1 {
			r.fatal("a command that the edge would let pass broke its batch: %s", said.detail)
		}
		r.rebuild()
		r.again(nil)
		for _, c := range commands {
			r.turn([]*engine.Command{c}, noFault)
		}
		return
	default:
		r.fatal("a plan failed with %s: %s", said.Code, said.detail)
	}
	r.rebuild()
	r.again(commands)
}

// rebuild reads both boards anew; parked claims are forgotten by it.
func (r *run) rebuild() {
	r.t.Helper()
	for _, s := range r.sides {
		r.must(s.rebuild(r.ctx(), r.config))
	}
	r.counts.Rebuilds++
}

// again asks what was not answered. Claims that were parked are taken off and asked anew, as whoever lost touch with the
// engine's promises does: a decision that nobody heard of may have answered them.
func (r *run) again(commands []*engine.Command) {
	r.t.Helper()
	var anew []*engine.Command
	for _, c := range r.parked {
		claim := *c.Claim
		off, on := r.command(&engine.Command{Return: &engine.Return{Claim: c.ID}}), r.command(&engine.Command{Claim: &claim})
		delete(r.asked, c.ID)
		r.dropped[c.ID], r.asked[off.ID], r.asked[on.ID] = true, off, on
		commands, anew = append(commands, off), append(anew, on)
	}
	r.parked = nil
	if commands = append(commands, anew...); len(commands) > 0 {
		r.turn(commands, noFault)
	}
}

// takeOver lets new engines decide. Half the time the old ones gave the row up, and always they are refused afterwards.
func (r *run) takeOver() {
	r.t.Helper()
	handed := r.rng.IntN(2) == 0
	r.count()
	for _, s := range r.sides {
		old, batch := s.epoch, s.batch+1
		if handed {
			r.must(s.store.HandOver(r.ctx(), old))
		} else {
			r.must(s.store.Renew(r.ctx(), old))
		}
		r.must(s.takeOver(r.ctx(), r.config))
		late := &models.Plan{Cell: 1, Epoch: old, Batch: batch, At: r.now, Done: []models.ID{{1}}}
		if _, err := s.store.Apply(r.ctx(), late); models.CodeOf(err) != models.FenceLost {
			r.fatal("%s: an old brain could still write: %v", s.name, err)
		}
		if err := s.store.Renew(r.ctx(), old); models.CodeOf(err) != models.FenceLost {
			r.fatal("%s: an old brain could still renew: %v", s.name, err)
		}
	}
	r.counts.Takeovers++
	r.again(nil)
}

// due says that a tick is due by time.
func (r *run) due() bool {
	a, b := r.sides[0].engine.NextWake(), r.sides[1].engine.NextWake()
	if a != b {
		r.fatal("one side wakes at %d, the other at %d", a, b)
	}
	return a <= r.now
}

func (r *run) tick() *engine.Command {
	id := r.id()
	r.ticks[id] = true
	return &engine.Command{ID: id, Tick: &engine.Tick{}}
}

// settle runs ticks until the engines have nothing left to do at this moment.
func (r *run) settle() {
	r.t.Helper()
	for range 2_000 {
		if r.sides[0].engine.Busy() != r.sides[1].engine.Busy() {
			r.fatal("one side is busy, the other is not")
		}
		if !r.sides[0].engine.Busy() && !r.due() {
			return
		}
		r.turn([]*engine.Command{r.tick()}, noFault)
	}
	r.fatal("the engines never come to rest")
}

// check compares what the boards would be rebuilt from, and each board with that.
func (r *run) check() {
	r.t.Helper()
	var snapshots [2]*models.Snapshot
	for i, s := range r.sides {
		var err error
		snapshots[i], err = s.store.Load(r.ctx(), r.config.Heads, r.config.MostEntries)
		r.must(err)
		if err := s.engine.Check(snapshots[i]); err != nil {
			r.fatal("%s: the board is not its rebuild: %v", s.name, err)
		}
	}
	if d := difference(snapshots[0], snapshots[1]); d != "" {
		r.fatal("the snapshots differ at %s", d)
	}
}

// compareRows compares every task, workflow, policy and ended attempt of the script.
func (r *run) compareRows() {
	r.t.Helper()
	need := &models.Need{Tasks: r.known.all, Workflows: r.known.workflows, Policies: r.known.all, Tokens: r.known.tokens}
	var facts [2]*models.Facts
	for i, s := range r.sides {
		var err error
		facts[i], err = s.store.Facts(r.ctx(), need)
		r.must(err)
		for ref, a := range facts[i].Tokens { // what facts promise of an attempt
			facts[i].Tokens[ref] = models.Attempt{N: a.N, Outcome: a.Outcome, Usage: a.Usage, StartedAt: a.StartedAt, FinishedAt: a.FinishedAt}
		}
	}
	if d := difference(facts[0], facts[1]); d != "" {
		r.fatal("the rows differ at %s", d)
	}
	if n := len(facts[0].Tasks); n != len(r.known.all) || len(facts[0].Tokens) != len(r.known.tokens) {
		r.fatal("%d of %d tasks and %d of %d attempts are there", n, len(r.known.all), len(facts[0].Tokens), len(r.known.tokens))
	}
}

// count adds what the engines counted themselves.
func (r *run) count() {
	c := r.sides[0].engine.Board().Counted
	r.counts.Refills += c.Refills
	r.counts.Shrinks += c.Shrinks
	if store, is := r.sides[0].store.(*memory.Store); is {
		r.counts.said(store.Said())
	}
	r.counts.SeveralKeys, r.counts.Ordered, r.counts.Rated = r.keys.several, r.keys.ordered, r.keys.rated
}

func (c *Counts) said(s memory.Said) {
	c.Labels, c.Watermarks, c.Dedupes = int64(len(s.Labels)), int64(len(s.Watermarks)), int64(len(s.Dedupes))
	c.Signals, c.Judgements, c.Messages = int64(len(s.Signals)), int64(len(s.Qualities)), int64(len(s.Messages))
	c.Marks, c.Takes = int64(len(s.Marks)), int64(len(s.Takes))
}
