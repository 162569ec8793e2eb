package engine

import (
	"cmp"
	"slices"

	"nightshift/models"
	"nightshift/scheduler/board"
	"nightshift/scheduler/fit"
)

// reservedShare is how much of a pool's workers may be kept for tasks that fit nowhere now, at least one worker.
const reservedShare = 0.15

// reservation keeps a worker for a task that has waited past its bound and fits nowhere. Its moment never slides: what
// starts meanwhile ends before it or fits beside the task.
type reservation struct {
	task   models.ID
	row    models.Task
	worker models.ID
	pool   string
	at     models.Instant
	idle   models.Instant // when something was first refused for it, 0: nothing was
}

// reserve drops the reservations that have lost their sense and makes those that are due, the longest wait first.
func (e *Engine) reserve() {
	for worker, r := range e.reserved { // any order: each on its own
		w := e.board.Workers[worker]
		if entry := e.waiting(r); entry == nil || w == nil || !e.there(w) || !e.mayBeKept(e.board.Line(board.LineOf(&entry.Row)), entry) {
			delete(e.reserved, worker)
		}
	}
	held := map[string]int{}
	taken := map[models.ID]bool{}
	for _, r := range e.reserved { // any order: counts
		held[r.pool]++
		taken[r.task] = true
	}
	heads := e.starving(taken)
	if len(heads) == 0 {
		return
	}
	workers := e.workers()
	for _, entry := range heads {
		if !e.full(held) && !e.roomFor(workers, entry) {
			if w, at := e.soonest(workers, entry, held); w != nil {
				e.reserved[w.ID] = &reservation{task: entry.Row.ID, row: entry.Row, worker: w.ID, pool: w.Pool, at: at}
				held[w.Pool]++
			}
		}
	}
}

// mayBeKept says that a worker may be kept for the task: nothing keeps it from starting that lasts longer than what runs.
func (e *Engine) mayBeKept(line *board.Line, entry *board.Entry) bool {
	return e.board.Open(&entry.Row) && e.board.GateBesideLimits(line) == "" && e.board.Short(&entry.Row) == nil
}

// mostKept is how many workers of a pool may be kept.
func (e *Engine) mostKept(pool string) int {
	return max(1, int(reservedShare*float64(e.board.Pools[pool].Workers)))
}

// full says that no pool may keep another worker.
func (e *Engine) full(held map[string]int) bool {
	for pool := range e.board.Pools { // any order: whether there is one
		if held[pool] < e.mostKept(pool) {
			return false
		}
	}
	return true
}

// waiting is the reservation's task while it still stands in its line.
func (e *Engine) waiting(r *reservation) *board.Entry {
	if entry := e.board.Held(r.task); entry != nil && entry.Windowed() && entry.Row.State == models.Ready {
		return entry
	}
	return nil
}

// starving lists the heads past their ageing bound that workers had a slot for but no room, while others filled the gaps, the
// longest wait first. Where all slots are simply taken, waiting its turn is no starvation. A head whose tenant, lane or type is
// at a limit starves like any other: what fits goes on taking its place under the limit.
func (e *Engine) starving(taken map[models.ID]bool) []*board.Entry {
	var out []*board.Entry
	for _, kind := range models.Kinds() {
		for _, q := range e.board.Queues(kind) {
			for _, line := range q.Lines {
				if line.Misfit == 0 {
					continue
				}
				head := line.Head()
				if head != nil && !taken[head.Row.ID] && line.Misfit > head.Row.ReadyAt && e.now-head.Row.ReadyAt > board.AgedAfter(kind) && e.mayBeKept(line, head) {
					out = append(out, head)
				}
			}
		}
	}
	slices.SortFunc(out, func(a, b *board.Entry) int {
		return cmp.Or(cmp.Compare(a.Row.ReadyAt, b.Row.ReadyAt), a.Row.ID.Compare(b.Row.ID))
	})
	return out
}

// couldRun says whether the worker takes such tasks at all, as things stand.
func (e *Engine) couldRun(w *board.Worker, row *models.Task, lane *board.Lane) bool {
	return lane != nil && e.there(w) && e.board.Fits(w, row.Class) && e.board.Serves(w, row.Env, lane) && e.board.HeldOn(w, lane.Kind, lane) == nil
}

// roomFor says whether any worker that could run the task has room for it right now.
func (e *Engine) roomFor(workers []*board.Worker, entry *board.Entry) bool {
	row := &entry.Row
	lane := e.board.Lanes[row.Lane]
	for _, w := range workers {
		if !e.couldRun(w, row, lane) {
			continue
		}
		if _, ok := w.Use.Room(&w.Worker, lane.Kind, e.board.Classes[row.Class]); ok {
			return true
		}
	}
	return false
}

// soonest finds the worker that will have room for the task first, of those not kept for others, in pools that may keep
// one more.
func (e *Engine) soonest(workers []*board.Worker, entry *board.Entry, held map[string]int) (best *board.Worker, at models.Instant) {
	row := &entry.Row
	lane := e.board.Lanes[row.Lane]
	for _, w := range workers {
		if e.reserved[w.ID] != nil || held[w.Pool] >= e.mostKept(w.Pool) || !e.couldRun(w, row, lane) {
			continue
		}
		if free := e.freeAt(w, lane.Kind, e.board.Classes[row.Class]); best == nil || free < at {
			best, at = w, free
		}
	}
	return best, at
}

// freeAt is when the worker will have room for the class, as its tasks end by their estimates.
func (e *Engine) freeAt(w *board.Worker, kind models.KindName, c *models.Class) models.Instant {
	leases := slices.Clone(w.Leases)
	slices.SortFunc(leases, func(a, b *board.Lease) int {
		return cmp.Or(cmp.Compare(e.endOf(a), e.endOf(b)), a.Row().ID.Compare(b.Row().ID))
	})
	at := e.now
	for i := range leases {
		use := e.useOf(w, leases[i:])
		if _, ok := use.Room(&w.Worker, kind, c); ok {
			return at
		}
		at = max(at, e.endOf(leases[i]))
	}
	return at
}

// useOf is what of a worker the given leases take.
func (e *Engine) useOf(w *board.Worker, leases []*board.Lease) *fit.Use {
	use := fit.NewUse(&w.Worker)
	for _, l := range leases {
		use.Take(&w.Worker, l.Kind, e.board.Classes[l.Row().Class], l.Cards)
	}
	return use
}

// endOf is when a running attempt should have ended, by the q95 of its like; one that has run longer may take as long
// again, and none longer than its hard timeout.
func (e *Engine) endOf(l *board.Lease) models.Instant {
	row := l.Row()
	ran := float64(e.now-row.StartedAt) / 1e6
	seconds := e.expected(row, 0.95)
	for seconds < ran {
		seconds *= 2
	}
	if row.HardSeconds > 0 {
		seconds = min(seconds, float64(row.HardSeconds))
	}
	return row.StartedAt + models.Instant(seconds*1e6)
}

// longest is how long a task that starts now will take at most, as far as backfilling believes it.
func (e *Engine) longest(row *models.Task) models.Instant {
	seconds := 3 * e.expected(row, 0.95)
	if row.EstimateMS > 0 {
		seconds = float64(row.EstimateMS) / 1000
	}
	if row.HardSeconds > 0 {
		seconds = min(seconds, float64(row.HardSeconds))
	}
	return models.Instant(seconds * 1e6)
}

// keeps says whether starting the task on the worker would break the worker's reservation: it would still run at its
// moment and would not fit beside it.
func (e *Engine) keeps(w *board.Worker, kind models.KindName, row *models.Task, cards []int) bool {
	r := e.reserved[w.ID]
	if r == nil || r.task == row.ID || e.now+e.longest(row) <= r.at {
		return false
	}
	var stay []*board.Lease
	for _, l := range w.Leases {
		if e.endOf(l) > r.at {
			stay = append(stay, l)
		}
	}
	use := e.useOf(w, stay)
	use.Take(&w.Worker, kind, e.board.Classes[row.Class], cards)
	if _, ok := use.Room(&w.Worker, e.board.Lanes[r.row.Lane].Kind, e.board.Classes[r.row.Class]); ok {
		return false
	}
	if r.idle == 0 {
		r.idle = e.now
	}
	return true
}

// crowds says whether starting a task would take the last place under a limit from one that a worker is kept for and has room
// for by now.
func (e *Engine) crowds(line *board.Line, entry *board.Entry) bool {
	for _, r := range e.reserved { // any order: whether there is one
		if r.task == entry.Row.ID {
			continue
		}
		kept, lane, w := e.board.Line(board.LineOf(&r.row)), e.board.Lanes[r.row.Lane], e.board.Workers[r.worker]
		if kept == nil || lane == nil || w == nil || !e.board.Crowds(line, kept) {
			continue
		}
		if _, ok := w.Use.Room(&w.Worker, lane.Kind, e.board.Classes[r.row.Class]); ok && e.waiting(r) != nil {
			return true
		}
	}
	return false
}

// redeem gives the worker the task it was kept for, once there is room. What stood idle meanwhile is its tenant's.
func (e *Engine) redeem(w *board.Worker, r *ration) (*board.Entry, []int) {
	res := e.reserved[w.ID]
	if res == nil {
		return nil, nil
	}
	entry := e.waiting(res)
	lane := e.board.Lanes[res.row.Lane]
	if entry == nil || lane == nil {
		delete(e.reserved, w.ID)
		return nil, nil
	}
	line, class := e.board.Line(board.LineOf(&entry.Row)), e.board.Classes[entry.Row.Class]
	if line == nil || e.board.Gate(line) != "" || e.board.HeldOn(w, lane.Kind, lane) != nil || !e.board.Open(&entry.Row) || !r.allows(lane.Kind, class) {
		return nil, nil
	}
	cards, ok := w.Use.Room(&w.Worker, lane.Kind, class)
	if !ok {
		return nil, nil
	}
	if res.idle > 0 {
		tenant := e.board.TenantOf(entry.Row.Env)
		seconds := e.now.Sub(res.idle).Seconds() * e.board.Pools[w.Pool].Share(class)
		e.board.Clock(w.Pool, lane.Kind).Correct(tenant, seconds, e.board.Weight(tenant))
	}
	delete(e.reserved, w.ID)
	return entry, cards
}

// keptFor is the reservation because of which a task does not start on a worker that has room for it, nil when there is
// none.
func (e *Engine) keptFor(row *models.Task, lane *board.Lane) *reservation {
	for _, w := range e.workers() {
		r := e.reserved[w.ID]
		if r == nil || lane == nil || !e.board.Fits(w, row.Class) || !e.board.Serves(w, row.Env, lane) {
			continue
		}
		if cards, ok := w.Use.Room(&w.Worker, lane.Kind, e.board.Classes[row.Class]); ok && e.keeps(w, lane.Kind, row, cards) {
			return r
		}
	}
	return nil
}
