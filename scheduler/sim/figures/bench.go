package figures

import (
	"cmp"
	"fmt"
	"slices"
	"time"
	"unsafe"

	"nightshift/models"
	"nightshift/scheduler/engine"
)

// bench is an engine on a store that does nothing but remember which tasks wait in which line.
type bench struct {
	engine   *engine.Engine
	clock    func() time.Duration
	now      models.Instant
	number   int64
	serial   uint64
	envs     []int32
	classes  []models.Class
	workers  []models.Worker
	turn     int // whose worker comes next
	next     int // which line gets the next task
	waiting  map[models.LineID][]mark
	one      models.Task // what any row looks like
	started  int
	deciding time.Duration
	settling time.Duration
	entering time.Duration // what was taken in while it cycled
}

// mark is a waiting row; the rest of it is like any other.
type mark struct {
	models.Mark
	ready models.Instant
}

const (
	benchWorkers = 64
	benchSlots   = 32
)

func newBench(clock func() time.Duration, tenants, classes int) *bench {
	b := &bench{engine: engine.New(engine.Config{}), clock: clock, now: 1_800_000_000_000_000, waiting: map[models.LineID][]mark{}}
	b.engine.Rebuild(&models.Snapshot{Now: b.now, Kinds: models.DefaultKinds()})
	for n := range tenants {
		tenant := &models.Tenant{ID: b.id(), Slug: fmt.Sprintf("t%d", n), Weight: float64(1 + n%4)}
		plan, _ := b.decide(nil, &engine.Command{Configure: &engine.Configure{New: true, Tenant: tenant}})
		b.envs = append(b.envs, plan.Environments[0].Env)
	}
	for n := range classes {
		b.classes = append(b.classes, models.Class{Type: fmt.Sprintf("work-%d", n)})
	}
	for n := range benchWorkers {
		w := models.Worker{ID: b.id(), Session: b.id(), Name: fmt.Sprintf("w%d", n), Pool: "cpu", Slots: benchSlots, LeaseSeconds: 3600}
		w.Instance = w.Name
		b.decide(nil, &engine.Command{Register: &engine.Register{Worker: w}})
		b.workers = append(b.workers, w)
	}
	return b
}

func (b *bench) id() models.ID {
	b.serial++
	var entropy [10]byte
	for i := range 8 {
		entropy[9-i] = byte(b.serial >> (8 * i))
	}
	return models.NewID(b.now, entropy)
}

// decide runs one batch; what the engine itself takes is added to spent.
func (b *bench) decide(spent *time.Duration, commands ...*engine.Command) (*models.Plan, []engine.Reply) {
	b.now += 1000
	b.number++
	for _, c := range commands {
		c.ID = b.id()
	}
	began := b.clock()
	b.engine.Need(commands)
	plan, replies := b.engine.Decide(b.number, 1, &models.Facts{Now: b.now}, commands)
	b.engine.Commit(&models.Effects{})
	ask := b.engine.Asks()
	took := b.clock() - began
	b.keep(plan)
	if ask != nil {
		refill := b.refill(ask)
		began = b.clock()
		b.engine.Refilled(ask, refill)
		took += b.clock() - began
	}
	if spent != nil {
		*spent += took
	}
	return plan, replies
}

// keep remembers new rows and forgets those that have started.
func (b *bench) keep(plan *models.Plan) {
	for i := range plan.Tasks {
		row := &plan.Tasks[i]
		line := models.LineID{Lane: row.Lane, Env: row.Env, Class: row.Class}
		b.one = *row
		b.waiting[line] = append(b.waiting[line], mark{models.Mark{AgeKey: row.AgeKey, ID: row.ID}, row.ReadyAt})
	}
	for i := range plan.Changes {
		row := &plan.Changes[i].After
		if row.State != models.Running {
			continue
		}
		line := models.LineID{Lane: row.Lane, Env: row.Env, Class: row.Class}
		switch at := b.find(line, models.Mark{AgeKey: row.AgeKey, ID: row.ID}); {
		case at == 0: // so that the rest need not move: what the bench does must not weigh on what it measures
			b.waiting[line] = b.waiting[line][1:]
		case at < len(b.waiting[line]):
			b.waiting[line] = slices.Delete(b.waiting[line], at, at+1)
		}
	}
}

// find is the place of the first that is not before the mark.
func (b *bench) find(line models.LineID, m models.Mark) int {
	at, _ := slices.BinarySearchFunc(b.waiting[line], m, func(w mark, m models.Mark) int {
		return cmp.Or(cmp.Compare(w.AgeKey, m.AgeKey), w.ID.Compare(m.ID))
	})
	return at
}

func (b *bench) refill(ask *models.RefillAsk) *models.Refill {
	out := &models.Refill{Lines: make([][]models.Task, len(ask.Lines))}
	for i, a := range ask.Lines {
		at := b.find(a.Line, a.After)
		if at < len(b.waiting[a.Line]) && b.waiting[a.Line][at].Mark == a.After {
			at++
		}
		for ; at < len(b.waiting[a.Line]) && len(out.Lines[i]) < a.Limit; at++ {
			m, row := b.waiting[a.Line][at], b.one
			row.Lane, row.Env, row.Class, row.AgeKey, row.ID, row.ReadyAt, row.CreatedAt = a.Line.Lane, a.Line.Env, a.Line.Class, m.AgeKey, m.ID, m.ready, m.ready
			out.Lines[i] = append(out.Lines[i], row)
		}
	}
	return out
}

// fill submits so many tasks, in turn to every tenant and class.
func (b *bench) fill(n int) { b.enter(nil, n) }

func (b *bench) enter(spent *time.Duration, n int) {
	for n > 0 {
		env := b.envs[b.next%len(b.envs)]
		tasks := make([]engine.NewTask, min(n, len(b.classes)))
		for i := range tasks {
			tasks[i] = engine.NewTask{ID: b.id(), Class: b.classes[(b.next/len(b.envs)+i)%len(b.classes)], Priority: 50, MaxAttempts: 3, EstimateMS: 1000}
		}
		b.next++
		n -= len(tasks)
		b.decide(spent, &engine.Command{Submit: &engine.Submit{Env: env, Tasks: tasks}})
	}
}

// cycle lets workers take what they have room for and end it, and fills up what was taken.
func (b *bench) cycle(times int) {
	for range times {
		w := &b.workers[b.turn%len(b.workers)]
		b.turn++
		_, replies := b.decide(&b.deciding, &engine.Command{Claim: &engine.Claim{Worker: w.ID, Session: w.Session, Most: benchSlots}})
		var results []engine.Result
		for _, r := range replies {
			if r.Answer == nil || r.Answer.Claimed == nil {
				continue
			}
			for _, lease := range r.Answer.Claimed.Leases {
				results = append(results, engine.Result{Token: lease.Row.Token, Task: models.TaskRef{Env: lease.Row.Env, ID: lease.Row.ID}, Outcome: models.AttemptSucceeded})
			}
		}
		b.started += len(results)
		b.now += 1_000_000
		b.decide(&b.settling, &engine.Command{Settle: &engine.Settle{Worker: w.ID, Session: w.Session, Results: results}})
		b.enter(&b.entering, len(results))
	}
}

// bytes is what the bench itself remembers.
func (b *bench) bytes() (n uintptr) {
	for _, line := range b.waiting { // any order: a sum
		n += uintptr(cap(line))*unsafe.Sizeof(mark{}) + 64
	}
	return n
}
