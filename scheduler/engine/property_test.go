package engine_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"nightshift/models"
	"nightshift/models/storetest"
	"nightshift/scheduler/board"
	"nightshift/scheduler/engine"
	"nightshift/scheduler/fit"
)

// chaos is a world under random commands, with what an onlooker knows of it: who holds which lease, who waits, what stood
// where before. What must hold is judged by the rows alone, never by what the engine thinks of them.
type chaos struct {
	*world
	envs    []int32
	workers []models.Worker
	held    map[models.ID]handout // by token: leases whose workers believe in them
	lost    []handout             // and those they have let go or settled
	parked  map[*engine.Command]models.Worker
	aged    map[models.LineID]string // lines whose last start passed a task that has waited for too long
	spent   time.Duration
}

type handout struct {
	worker models.Worker
	lease  engine.Lease
}

// keyLimits are the keys tasks may name.
var keyLimits = map[string]int32{"one": 1, "two": 2}

func newChaos(test *testing.T, t rapid.TB, cfg engine.Config) *chaos {
	c := &chaos{
		world: drawnWorld(test, t, cfg), held: map[models.ID]handout{}, parked: map[*engine.Command]models.Worker{},
		aged: map[models.LineID]string{},
	}
	c.do(&engine.Command{Configure: &engine.Configure{New: true, Tenant: &models.Tenant{ID: c.id(), Slug: "birch", Name: "Birch", Weight: 3, Timezone: "UTC"}}})
	c.envs = []int32{c.env, c.env + 1}
	for _, env := range c.envs {
		c.do(&engine.Command{Configure: &engine.Configure{New: true, Lane: &models.Lane{Env: env, Name: "narrow", Kind: models.Batch, Weight: 1, MaxConcurrent: 2}}})
	}
	c.workers = []models.Worker{
		c.worker("wide"),
		c.worker("small", func(m *models.Worker) { m.Slots, m.CPUMilli = 1, 1000 }),
		c.worker("kinds", func(m *models.Worker) {
			m.Slots, m.KindSlots = 0, map[string]int32{"compute": 1, "batch": 2}
		}),
	}
	return c
}

// drawnWorld is over the reference store alone: what is drawn is too much to be told twice.
func drawnWorld(test *testing.T, t rapid.TB, cfg engine.Config) *world {
	return worldFor(t, cfg, func(clock func() models.Instant) *storetest.Mirror { return storetest.Lone(test, clock) })
}

// step does commands in one turn and judges what came of them.
func (c *chaos) step(cmds ...*engine.Command) []engine.Reply {
	before := c.rows()
	for _, cmd := range cmds {
		cmd.ID = c.id()
		if cmd.Claim != nil {
			c.parked[cmd] = c.of(cmd.Claim.Worker)
		}
	}
	replies := c.turn(cmds...)
	var started []engine.Lease
	for _, r := range replies {
		worker, waited := c.parked[r.To]
		delete(c.parked, r.To)
		if r.Err != nil || r.Answer == nil || r.Answer.Claimed == nil {
			continue
		}
		if !waited {
			c.t.Fatalf("a claim is answered twice")
		}
		for _, l := range r.Answer.Claimed.Leases {
			c.held[l.Row.Token] = handout{worker, l}
			started = append(started, l)
		}
	}
	after := c.rows()
	c.oneLease(after)
	c.withinLimits(after, started)
	c.inOrder(before, after, started)
	c.conserves(after)
	c.recount(after)
	return replies
}

func (c *chaos) of(worker models.ID) models.Worker {
	for _, w := range c.workers {
		if w.ID == worker {
			return w
		}
	}
	return models.Worker{}
}

func (c *chaos) rows() map[models.ID]models.Task {
	out := map[models.ID]models.Task{}
	for _, row := range c.store.Tasks() {
		out[row.ID] = row
	}
	return out
}

// oneLease: a live task has one lease, and the lease is the row's; nothing else has any.
func (c *chaos) oneLease(rows map[models.ID]models.Task) {
	live := map[models.ID]models.ID{}
	for token, lease := range c.engine.Board().Leases {
		id := lease.Row().ID
		if other, twice := live[id]; twice {
			c.t.Fatalf("task %x has two live leases, %x and %x", id, other, token)
		}
		live[id] = token
		if row := rows[id]; row.Token != token || !row.State.Live() {
			c.t.Fatalf("lease %x is of task %x, which is %s under %x", token, id, row.State, row.Token)
		}
	}
	for id, row := range rows {
		if row.State.Live() && live[id] != row.Token {
			c.t.Fatalf("task %x is %s without a lease", id, row.State)
		}
	}
}

// withinLimits: whatever started left its lane, its key, its worker and its worker's kinds within their limits.
func (c *chaos) withinLimits(rows map[models.ID]models.Task, started []engine.Lease) {
	lanes, keys, workers, kinds, cpu := map[int32]int32{}, map[board.KeyID]int32{}, map[models.ID]int32{}, map[string]int32{}, map[models.ID]int64{}
	for _, row := range rows {
		if !row.State.Live() {
			continue
		}
		lanes[row.Lane]++
		workers[row.Worker]++
		kinds[fmt.Sprint(row.Worker, c.engine.Board().Lanes[row.Lane].Kind)]++
		cpu[row.Worker] += c.engine.Board().Classes[row.Class].CPUMilli
		if row.LimitKey != "" {
			keys[board.KeyID{Env: row.Env, Name: row.LimitKey}]++
		}
	}
	for _, l := range started {
		row, w := &l.Row, c.of(l.Row.Worker)
		lane := c.engine.Board().Lanes[row.Lane]
		if lane.MaxConcurrent > 0 && lanes[row.Lane] > lane.MaxConcurrent {
			c.t.Fatalf("%d tasks run in the lane %s, which allows %d", lanes[row.Lane], lane.Name, lane.MaxConcurrent)
		}
		if lane.Paused {
			c.t.Fatalf("a task started in the lane %s, which is paused", lane.Name)
		}
		if n := keys[board.KeyID{Env: row.Env, Name: row.LimitKey}]; row.LimitKey != "" && n > row.KeyLimit {
			c.t.Fatalf("%d tasks hold the key %s, which allows %d", n, row.LimitKey, row.KeyLimit)
		}
		slots, of := w.Slots, workers[row.Worker]
		if w.KindSlots != nil {
			slots, of = w.KindSlots[lane.Kind.String()], kinds[fmt.Sprint(row.Worker, lane.Kind)]
		}
		if of > slots || cpu[row.Worker] > w.CPUMilli {
			c.t.Fatalf("%s runs %d of %d with %d of %d milli CPU", w.Name, of, slots, cpu[row.Worker], w.CPUMilli)
		}
	}
}

// agedAfter is how long a task of the lanes used here may wait before urgent ones no longer pass it at will.
var agedAfter = map[models.KindName]time.Duration{models.Compute: 15 * time.Minute, models.Batch: 30 * time.Minute}

// inOrder: nothing without a deadline passes a task of its own line that stands before it, and what has one passes a task
// beyond the ageing bound at most every second time.
func (c *chaos) inOrder(before, after map[models.ID]models.Task, started []engine.Lease) {
	mine := map[models.ID]bool{}
	for _, l := range started {
		mine[l.Row.ID] = true
	}
	for _, l := range started {
		line, passed, head := board.LineOf(&l.Row), "", models.Task{AgeKey: math.MaxInt64}
		for id, row := range after {
			was := before[id]
			waits := !mine[id] && was.State == models.Ready && row.State == models.Ready && was.Gate == "" && row.Gate == "" && row.LimitKey == ""
			if !waits || board.LineOf(&row) != line || !ranksBefore(&row, &l.Row) {
				continue
			}
			if l.Row.LatestStart == 0 {
				c.t.Fatalf("task %x started before %x of the same line, which stands %s before it", l.Row.ID, id, time.Duration(l.Row.AgeKey-row.AgeKey)*time.Microsecond)
			}
			if ranksBefore(&row, &head) {
				head = row
			}
		}
		if c.now.Sub(head.ReadyAt) > agedAfter[c.engine.Board().Lanes[l.Row.Lane].Kind] && !head.ID.IsZero() {
			passed = fmt.Sprintf("%x", head.ID)
		}
		if passed != "" && c.aged[line] != "" {
			c.t.Fatalf("task %s has waited beyond the bound and was passed twice running", passed)
		}
		c.aged[line] = passed
	}
}

func ranksBefore(a, b *models.Task) bool {
	return a.AgeKey < b.AgeKey || a.AgeKey == b.AgeKey && a.ID.Compare(b.ID) < 0
}

// conserves: no claim waits with room for a task that may start.
func (c *chaos) conserves(rows map[models.ID]models.Task) {
	lanes, keys := map[int32]int32{}, map[board.KeyID]int32{}
	use := map[models.ID]*fit.Use{}
	for i := range c.workers {
		use[c.workers[i].ID] = fit.NewUse(&c.workers[i])
	}
	b := c.engine.Board()
	for _, row := range rows {
		if row.State.Live() {
			w := c.of(row.Worker)
			lanes[row.Lane]++
			keys[board.KeyID{Env: row.Env, Name: row.LimitKey}]++
			use[row.Worker].Take(&w, b.Lanes[row.Lane].Kind, b.Classes[row.Class], nil)
		}
	}
	for cmd, w := range c.parked {
		if cmd.Claim.Until <= c.now {
			continue
		}
		for id, row := range rows {
			lane := b.Lanes[row.Lane]
			if row.State != models.Ready || lane.Paused || lane.MaxConcurrent > 0 && lanes[row.Lane] >= lane.MaxConcurrent {
				continue
			}
			if row.LimitKey != "" && keys[board.KeyID{Env: row.Env, Name: row.LimitKey}] >= row.KeyLimit {
				continue
			}
			class := b.Classes[row.Class]
			if _, room := use[w.ID].Room(&w, lane.Kind, class); room && fit.Lack(&w, class) == "" {
				c.t.Fatalf("%s waits with room, and so does task %x (gate %q, %s, key %q)", w.Name, id, row.Gate, class.Type, row.LimitKey)
			}
		}
	}
}

// recount: what the board counts is what the rows add up to.
func (c *chaos) recount(rows map[models.ID]models.Task) {
	type counts struct {
		running       int32
		depth, parked int64
	}
	want := map[int32]counts{}
	for _, row := range rows {
		n := want[row.Lane]
		switch {
		case row.State.Live():
			n.running++
		case row.State == models.Ready && row.Gate == "":
			n.depth++
		case row.State == models.Ready:
			n.parked++
		}
		want[row.Lane] = n
	}
	for number, lane := range c.engine.Board().Lanes {
		if got := (counts{lane.Running, lane.Depth, lane.Parked}); got != want[number] {
			c.t.Fatalf("lane %s: %+v on the board, the rows add up to %+v", lane.Name, got, want[number])
		}
	}
}

// Whatever is asked of the engine in whatever order, what was promised holds after every turn.
func TestWhatIsPromisedHoldsUnderAnyCommands(test *testing.T) {
	steps := 0
	rapid.Check(test, func(t *rapid.T) {
		heads := rapid.SampledFrom([]int{0, 1}).Draw(t, "heads")
		most := rapid.SampledFrom([]int{0, 6}).Draw(t, "entries")
		c := newChaos(test, t, engine.Config{Heads: heads, MostEntries: most})
		t.Repeat(c.actions(&steps))
	})
	if steps < 100 {
		test.Errorf("only %d steps were made: the test shows nothing", steps)
	}
}
