package engine

import (
	"nightshift/models"
	"nightshift/scheduler/board"
	"nightshift/scheduler/estimate"
	"nightshift/scheduler/forecast"
)

// watch compares what runs of schedules with what was foreseen, minute by minute, and corrects by it every five.
type watch struct {
	minute models.Instant // that is watched now
	bucket models.Instant // five of them
	now    map[forecast.Of]*watched
	ended  map[forecast.Of]float64 // since the last look
}

type watched struct {
	most          float64 // at the same time in this minute
	ran, foreseen float64 // over the minutes of this bucket
	minutes       int
	full          bool // its pool was: what ran was not all that wanted to
}

func newWatch() watch {
	return watch{now: map[forecast.Of]*watched{}, ended: map[forecast.Of]float64{}}
}

func (w *watch) of(of forecast.Of) *watched {
	x := w.now[of]
	if x == nil {
		x = &watched{}
		w.now[of] = x
	}
	return x
}

const (
	watchMinute = models.Instant(60_000_000)
	watchBucket = 5 * watchMinute
)

// watchLoad looks at what runs now of schedules.
func (e *Engine) watchLoad() {
	w := &e.outlook.watch
	if e.outlook.grid == nil {
		return
	}
	if minute := e.now / watchMinute * watchMinute; minute != w.minute {
		e.turnMinute(minute)
	}
	running, live := map[forecast.Of]float64{}, map[string]int64{}
	for of, n := range w.ended { // any order: a copy
		running[of] += n
	}
	clear(w.ended)
	for _, lease := range e.board.Leases { // any order: sums
		live[lease.Pool]++
		if e.ofSchedule(lease) {
			running[forecast.Of{Pool: lease.Pool, Kind: lease.Kind}]++
		}
	}
	for of, n := range running { // any order: each on its own
		w.of(of).most = max(w.of(of).most, n)
	}
	for of, x := range w.now { // any order: each on its own
		if p := e.board.Pools[of.Pool]; p == nil || live[of.Pool] >= p.Slots {
			x.full = true
		}
	}
}

func (e *Engine) ofSchedule(lease *board.Lease) bool {
	row := lease.Row()
	return e.plans.runs[row.ID] != nil || !row.Workflow.IsZero() && e.plans.runs[row.Workflow] != nil
}

// turnMinute closes the minute that is over, and with five of them corrects the forecast.
func (e *Engine) turnMinute(minute models.Instant) {
	w := &e.outlook.watch
	whole := minute == w.minute+watchMinute
	for _, x := range w.now { // any order: each on its own
		x.ran, x.most = x.ran+x.most, 0
		x.minutes++
	}
	if bucket := minute / watchBucket * watchBucket; bucket != w.bucket {
		for of, x := range w.now { // any order: each on its own
			if whole && x.minutes == int(watchBucket/watchMinute) && !x.full {
				e.outlook.seen.Saw(of, w.bucket, x.ran/float64(x.minutes), x.foreseen/float64(x.minutes))
			}
		}
		w.bucket = bucket
		clear(w.now)
		e.b.plan.Corrections = append(e.b.plan.Corrections, e.outlook.seen.Changes()...)
	}
	if !whole {
		clear(w.now)
	}
	w.minute = minute
	for _, of := range e.outlook.grid.Of() {
		w.of(of).foreseen += e.outlook.grid.Raw(of, minute)
	}
}

// learnRun takes in what a run that ended made. Of a task alone it is known how long it ran; of a workflow how many tasks it
// had, and how long it took.
func (e *Engine) learnRun(r *scheduleRun, row *models.Task, f *flow) {
	p := &r.of.state.Profile
	switch {
	case row != nil && row.StartedAt > 0:
		estimate.Follow(&p.Tasks, p.Runs == 0, 1000)
		estimate.Follow(&p.TaskMS, p.Runs == 0, e.now.Sub(row.StartedAt).Milliseconds())
		p.Class, p.Lane, p.LastsMS = row.Class, row.Lane, 0
		if lane := e.board.Lanes[row.Lane]; lane != nil {
			e.outlook.watch.ended[forecast.Of{Pool: e.poolOf(work{row.Env, row.Lane, row.Class}), Kind: lane.Kind}]++
		}
	case f != nil:
		estimate.Follow(&p.Tasks, p.Runs == 0, 1000*int64(max(1, f.row.Counts.Total()-f.row.Counts[models.Skipped])))
		p.TaskMS = e.usualMS(r.Env, p.Class)
		lasts := [3]int64{p.LastsMS, p.LastsMS, p.LastsMS}
		estimate.Follow(&lasts, p.Runs == 0 || p.LastsMS == 0, e.now.Sub(r.FiredAt).Milliseconds())
		p.LastsMS = lasts[0]
	default:
		return
	}
	p.Runs = min(p.Runs+1, 1_000_000)
}

// noteWork keeps where most of the tasks go that a run made.
func (e *Engine) noteWork(s *schedule, changes []*change) {
	count := map[work]int{}
	most := work{}
	for _, c := range changes {
		w := work{s.Env, c.row.Lane, c.row.Class}
		if count[w]++; count[w] > count[most] {
			most = w
		}
	}
	s.state.Profile.Lane, s.state.Profile.Class = most.lane, most.class
}
