package sim

import (
	"fmt"

	"nightshift/models"
)

// mostViolations is how many are kept; a world that breaks breaks often.
const mostViolations = 20

// watch is what the world sees of the plans, to hold them against what must be.
type watch struct {
	wakes   models.Instant
	env     int32 // the last one made
	classes map[int32]models.Class
	workers map[models.ID]models.Worker
	use     map[models.ID]*use
	lanes   map[int32]models.Lane
	inLane  map[int32]int32  // live tasks
	holding map[holder]int32 // live tasks by concurrency key
	inType  map[typeOf]int64 // live tasks
	rates   map[holder]*rateWatch
	order   map[holder]int64 // the last place in the order of a key that has started
	types   map[typeOf]models.TaskType
	ready   int64 // tasks in lines
	parked  int64 // tasks behind gates
	known   map[models.ID]*models.Worker
	last    models.Instant
}

// use is what a worker has given out.
type use struct {
	tasks, cpu, memory int64
	cards              map[int]int64 // MB given; a card given whole counts all of it
}

type holder struct {
	env int32
	key string
}

func newWatch() watch {
	return watch{
		classes: map[int32]models.Class{}, workers: map[models.ID]models.Worker{}, use: map[models.ID]*use{},
		lanes: map[int32]models.Lane{}, inLane: map[int32]int32{}, holding: map[holder]int32{}, rates: map[holder]*rateWatch{}, order: map[holder]int64{}, inType: map[typeOf]int64{}, types: map[typeOf]models.TaskType{}, known: map[models.ID]*models.Worker{},
	}
}

func (w *World) violate(format string, args ...any) {
	w.result.Counters["violations"]++
	if len(w.result.Violations) < mostViolations {
		w.result.Violations = append(w.result.Violations, fmt.Sprintf("at %s: ", w.now.Sub(dawn))+fmt.Sprintf(format, args...))
	}
}

// watched looks at a plan that stands.
func (w *World) watched(p *models.Plan) {
	for _, c := range p.Classes {
		w.watch.classes[c.Number] = c
	}
	for _, row := range p.Workers {
		w.watch.workers[row.ID] = row
		w.joined(row)
	}
	for _, l := range p.Lanes {
		w.watch.lanes[l.Number] = l
	}
	for _, e := range p.Environments {
		w.watch.env = e.Env
	}
	ended := map[models.ID]bool{} // tokens
	for i := range p.Attempts {
		a := &p.Attempts[i]
		ended[a.Token] = true
		w.result.Counters["attempts_"+a.Outcome.String()]++
		if j := w.jobs[a.Task]; j != nil && a.Outcome == models.AttemptSucceeded {
			if j.success++; j.success > 1 {
				w.violate("task %d succeeded twice", j.n)
			}
		}
	}
	for i := range p.Changes {
		c := &p.Changes[i]
		if c.Token != (models.ID{}) && c.After.Token != c.Token && !ended[c.Token] {
			w.violate("task %x left its lease without the end of an attempt", c.After.ID)
		}
		if c.From.Final() {
			w.violate("task %x left %s", c.After.ID, c.From)
		}
	}
	// What ends makes room before what starts takes it.
	for i := range p.Changes {
		w.leave(&p.Changes[i].After)
	}
	for i := range p.Changes {
		w.enter(&p.Changes[i].After)
	}
	for i := range p.Tasks {
		w.enter(&p.Tasks[i])
	}
	w.watchHolds(p)
	w.ranks.judge(w.batch)
	w.result.Counters["batches"]++
}

// leave takes a task out of what its row said before.
func (w *World) leave(row *models.Task) {
	j := w.jobs[row.ID]
	if j == nil {
		return
	}
	w.yields(j, -1)
	if j.lines {
		j.lines = false
		j.tenant.ready--
		w.watch.ready--
		j.stand.gone = true
	}
	if j.parked {
		j.parked = false
		w.watch.parked--
	}
	if j.state.Live() {
		j.tenant.running--
		w.take(&j.row, -1)
	}
}

// enter puts a task where its row says.
func (w *World) enter(row *models.Task) {
	j := w.jobs[row.ID]
	if j == nil {
		return
	}
	before := j.row
	j.row, j.state = *row, row.State
	if row.State == models.Ready && row.Gate == "" {
		j.lines = true
		j.tenant.ready++
		w.watch.ready++
		j.stand = w.ranks.enter(row, w.batch)
	}
	if j.parked = row.State == models.Ready && row.Gate != ""; j.parked {
		w.watch.parked++
	}
	if row.ReadyAt != 0 && j.freed == 0 {
		j.freed = row.ReadyAt
	}
	if row.State.Live() {
		j.tenant.running++
		w.take(row, 1)
	}
	if row.State.Live() && !j.started {
		w.started(j)
	}
	w.yields(j, 1)
	if ended := row.State.Final() || row.State == models.DeadLetter; ended && !j.ended {
		j.ended, j.done = true, w.now
		w.open--
		w.watch.last = w.now
		if j.then != nil {
			w.after(0, j.then)
		}
		w.result.Counters[row.State.String()]++
		if row.State == models.DeadLetter {
			w.strand(j.next)
		}
	}
	if before.State != row.State || before.Token != row.Token || before.ID.IsZero() {
		w.note("t%d %s%s", j.n, row.State, w.by(row))
	}
}

// started notes the first start of a task.
func (w *World) started(j *job) {
	j.started = true
	waited := w.now.Sub(j.freed)
	j.tenant.waits = append(j.tenant.waits, waited)
	j.flow.waits = append(j.flow.waits, waited)
	w.ranks.start(&j.row)
}

// joined counts what a worker brings to its pool, or has changed, or takes away.
func (w *World) joined(row models.Worker) {
	if old := w.watch.known[row.ID]; old != nil {
		w.gauge.level(old.Pool).join(old, -1)
		delete(w.watch.known, row.ID)
	}
	if row.State != models.WorkerGone {
		w.watch.known[row.ID] = &row
		w.gauge.level(row.Pool).join(&row, 1)
	}
}

// strand lets go of what waits for a dead letter: only a person moves it on.
func (w *World) strand(waiting []*job) {
	for _, j := range waiting {
		if !j.ended {
			j.ended = true
			w.open--
			w.result.Counters["stranded"]++
			w.strand(j.next)
		}
	}
}

func (w *World) by(row *models.Task) string {
	if !row.State.Live() {
		return ""
	}
	w.result.Counters["starts"]++
	return " " + w.watch.workers[row.Worker].Name
}

// take gives a worker's room out, or back, and looks whether it had it.
func (w *World) take(row *models.Task, n int64) {
	u, worker, class := w.watch.use[row.Worker], w.watch.workers[row.Worker], w.watch.classes[row.Class]
	if u == nil {
		u = &use{cards: map[int]int64{}}
		w.watch.use[row.Worker] = u
	}
	w.weigh(w.jobs[row.ID], worker.Pool, &class, n)
	u.tasks += n
	u.cpu += n * class.CPUMilli
	u.memory += n * class.MemoryMB
	cards := int32(0)
	for i := range worker.GPUs {
		if row.Cards>>i&1 == 1 {
			vram := class.VRAMMB
			if vram == 0 {
				vram = worker.GPUs[i].VRAMMB
			}
			cards++
			if u.cards[i] += n * vram; u.cards[i] > worker.GPUs[i].VRAMMB {
				w.violate("of card %d of %s %d MB were given", i, worker.Name, u.cards[i])
			}
		}
	}
	w.limits(row, int32(n))
	w.quotas(row, n)
	if n < 0 {
		return
	}
	slots := int64(worker.Slots)
	for _, of := range worker.KindSlots { // any order: a sum
		slots += int64(of)
	}
	if u.tasks > slots || u.cpu > worker.CPUMilli && class.CPUMilli > 0 || u.memory > worker.MemoryMB && class.MemoryMB > 0 || cards < class.GPU {
		w.violate("%s was given more than it has: %d tasks, %d milli CPU, %d MB, %d cards", worker.Name, u.tasks, u.cpu, u.memory, cards)
	}
}

// weigh adds what a task takes of its pool to its tenant's, or takes it off.
func (w *World) weigh(j *job, pool string, class *models.Class, n int64) {
	level := w.gauge.level(pool)
	level.take(class, float64(n))
	if n > 0 {
		j.share = level.share(class)
		j.tenant.largest = max(j.tenant.largest, j.share*j.run.Seconds())
	}
	if j.tenant.rate += float64(n) * j.share; j.tenant.running == 0 {
		j.tenant.rate = 0 // rounding does not add up
	}
}

// limits counts what is live in a lane and under a concurrency key, and looks whether that was allowed.
func (w *World) limits(row *models.Task, n int32) {
	lane := w.watch.lanes[row.Lane]
	w.watch.inLane[row.Lane] += n
	if live := w.watch.inLane[row.Lane]; n > 0 && lane.MaxConcurrent > 0 && live > lane.MaxConcurrent {
		w.violate("%d tasks run in the lane %s, which allows %d", live, lane.Name, lane.MaxConcurrent)
	}
	w.keys(row, n)
}

// accepted looks at a result that was taken.
func (w *World) accepted(a *attempt) {
	if a.result.Outcome != models.AttemptSucceeded {
		return
	}
	if j := a.job; j.accepted.IsZero() {
		j.accepted = a.token
	} else if j.accepted != a.token {
		w.violate("task %d: two tokens were told that their success was accepted", j.n)
	}
}

// conserving looks that no worker waits while something is ready.
func (w *World) conserving() {
	if w.watch.ready == 0 {
		return
	}
	for _, p := range w.fleet {
		if p.up && p.claiming && p.room() > 0 && int64(p.row.Slots) > w.used(p.row.ID) {
			w.violate("%s waits while %d tasks are ready", p.row.Name, w.watch.ready)
			return
		}
	}
}

func (w *World) used(worker models.ID) int64 {
	if u := w.watch.use[worker]; u != nil {
		return u.tasks
	}
	return 0
}
