package engine

import (
	"math"
	"slices"
	"time"

	"nightshift/models"
	"nightshift/scheduler/calendar"
	"nightshift/scheduler/fit"
	"nightshift/scheduler/forecast"
)

// How the brain looks ahead: a day, made anew each minute where schedules are few, and in slices where they are many.
const (
	lookAhead   = 25 * 60 * 60 * 1_000_000
	lookEvery   = 60_000_000
	lookSoon    = 5_000_000 // after an edit
	lookUnits   = 8_000     // moments that a sweep looks up
	longestRun  = 6 * 60 * 60 * 1_000_000
	mostMoments = 1500 // of one schedule
	mostPlaces  = 8    // of a flexible schedule that are kept
)

// outlook is what the brain foresees of schedules: the grid that is asked, and the next one while it is made.
type outlook struct {
	grid *forecast.Grid
	next *forecast.Grid
	seen *forecast.Seen

	begun    models.Instant
	due      models.Instant // when the next is to be begun
	last     models.ID      // the schedule that was taken last
	ended    bool           // all have been: what is flexible comes now
	flexible []models.ID
	pools    map[work]string
	order    []models.ID // all schedules
	watch    watch
}

// work is where the pool of a schedule's work depends on.
type work struct {
	env, lane, class int32
}

// place is where an occurrence of a flexible schedule goes, by what was foreseen.
type place struct{ at, after models.Instant }

func newOutlook() outlook {
	return outlook{seen: forecast.NewSeen(), pools: map[work]string{}, watch: newWatch()}
}

// Foreseen is what the schedules are foreseen to ask for; nil before it is known.
func (e *Engine) Foreseen() *forecast.Grid { return e.outlook.grid }

// knows notes that a schedule came, forgets that it went. A grid that stands is out of date.
func (o *outlook) knows(id models.ID) {
	if i, known := slices.BinarySearchFunc(o.order, id, models.ID.Compare); !known {
		o.order = slices.Insert(o.order, i, id)
	}
}

func (o *outlook) forgets(id models.ID) {
	if i, known := slices.BinarySearchFunc(o.order, id, models.ID.Compare); known {
		o.order = slices.Delete(o.order, i, i+1)
	}
}

// changed lets the next grid be made soon.
func (o *outlook) changed(now models.Instant) { o.due = min(o.due, now+lookSoon) }

// poolsChanged forgets where work goes: workers came or went.
func (o *outlook) poolsChanged(now models.Instant) {
	clear(o.pools)
	o.changed(now)
}

// lookOn makes a bounded part of the next grid. One that is whole takes the place of the one before.
func (e *Engine) lookOn() {
	o := &e.outlook
	if o.next == nil {
		if e.now < o.due || len(o.order) == 0 && o.grid == nil {
			return
		}
		o.next, o.begun, o.due = forecast.NewGrid(e.now, lookAhead, o.seen), e.now, models.Forever
		o.last, o.ended, o.flexible = models.ID{}, false, nil
		clear(o.pools)
	}
	units := lookUnits
	for units > 0 && !o.ended {
		i, known := slices.BinarySearchFunc(o.order, o.last, models.ID.Compare)
		if known {
			i++
		}
		if i == len(o.order) {
			o.ended = true
			break
		}
		o.last = o.order[i]
		units -= e.cast(e.plans.all[o.last])
	}
	for units > 0 && o.ended && len(o.flexible) > 0 {
		if s := e.plans.all[o.flexible[0]]; s != nil {
			units -= e.castFlexible(s)
		}
		o.flexible = o.flexible[1:]
	}
	if o.ended && len(o.flexible) == 0 {
		o.grid, o.next = o.next, nil
		o.due = min(o.due, max(o.begun+lookEvery, e.now+(e.now-o.begun)))
	}
}

// cast adds what a schedule is going to ask for, and says what that cost. What is flexible waits until all else is known.
func (e *Engine) cast(s *schedule) int {
	if s.Rule.FlexibleSeconds > 0 {
		e.outlook.flexible = append(e.outlook.flexible, s.ID)
		return 1
	}
	load, units := e.loadOf(s, e.now-longestRun)
	if load != nil {
		e.outlook.next.Add(load)
		units += load.Cells(lookAhead) / 16 // adding is cheaper than looking up
	}
	return units
}

// castFlexible gives each occurrence of a flexible schedule its place, in order.
func (e *Engine) castFlexible(s *schedule) int {
	load, units := e.loadOf(s, e.now)
	s.places = s.places[:0]
	if load == nil {
		return units
	}
	grid := e.outlook.next
	for _, f := range load.Fires {
		after := e.quietest(grid, s, load, f.At)
		one := *load
		one.Fires = []forecast.Fire{{At: f.At + after, Runs: f.Runs}}
		grid.Add(&one)
		if len(s.places) < mostPlaces {
			s.places = append(s.places, place{f.At, after})
		}
		units += 10
	}
	return units
}

func (e *Engine) quietest(grid *forecast.Grid, s *schedule, load *forecast.Load, at models.Instant) models.Instant {
	return grid.Quietest(load, at, models.Instant(s.Rule.FlexibleSeconds)*1_000_000, models.Instant(OwnPlace(&s.Schedule)/time.Microsecond))
}

// placed is how much later than its moment an occurrence of a flexible schedule starts: in the quietest minute of its window
// as far as the day is foreseen, else at the place that is the schedule's own.
func (e *Engine) placed(s *schedule, at models.Instant) time.Duration {
	if s.Rule.FlexibleSeconds == 0 {
		return 0
	}
	for _, p := range s.places {
		if p.at == at {
			return time.Duration(p.after) * time.Microsecond
		}
	}
	load := e.loadFor(s)
	after := e.quietest(e.outlook.grid, s, load, at)
	if e.outlook.grid != nil {
		load.Fires = []forecast.Fire{{At: at + after, Runs: 1}}
		e.outlook.grid.Add(load)
	}
	return time.Duration(after) * time.Microsecond
}

// loadOf is what a schedule asks for from a moment until the end of the grid that is made, nil when that is nothing.
func (e *Engine) loadOf(s *schedule, from models.Instant) (load *forecast.Load, units int) {
	if s.Rule.Gathers() || e.standsStill(s) != "" {
		return nil, 1
	}
	until := e.outlook.next.End()
	load = e.loadFor(s)
	if s.Rule.FromEnd {
		load.Fires = e.chained(s, load, until)
		return load, 1 + len(load.Fires)
	}
	table := e.timetable(s)
	if table == nil {
		return nil, 1
	}
	from = max(from, s.CreatedAt, e.now-models.Instant(load.Longest()*1e6)-1)
	load.Fires, units = MomentsOf(s.Rule.JitterSeconds, table, from, until, mostMoments)
	if len(load.Fires) == 0 {
		return nil, units
	}
	return load, units
}

// chained are the runs of an interval that counts from the end of the one before, were each to take its middle time.
func (e *Engine) chained(s *schedule, load *forecast.Load, until models.Instant) (out []forecast.Fire) {
	step := models.Instant(s.Rule.EverySeconds*1_000_000) + models.Instant(max(load.Lasts, load.Seconds.P50)*1e6)
	at := e.plans.agenda.At(s.ID)
	if at == 0 { // it runs
		at = max(e.now, s.state.LastFor) + step
	}
	step = max(step, 1_000_000, (until-at)/mostMoments+1)
	for at = max(at, e.now); at < until && (s.Rule.EndAt == 0 || at <= s.Rule.EndAt); at += step {
		out = append(out, forecast.Fire{At: at, Runs: 1})
	}
	return out
}

// loadFor is what a run of the schedule asks for.
func (e *Engine) loadFor(s *schedule) *forecast.Load {
	lane := e.board.Lanes[s.state.Profile.Lane]
	kind := models.Batch
	if lane != nil && lane.Env == s.Env {
		kind = lane.Kind
	}
	return LoadOf(&s.Schedule, &s.state.Profile, forecast.Of{Pool: e.poolOf(work{s.Env, s.state.Profile.Lane, s.state.Profile.Class}), Kind: kind})
}

// LoadOf is what a run of a schedule asks for, by what is known of its runs.
func LoadOf(s *models.Schedule, p *models.RunProfile, of forecast.Of) *forecast.Load {
	three := func(v [3]int64) forecast.Quantiles {
		return forecast.Quantiles{P50: float64(v[0]) / 1000, P70: float64(v[1]) / 1000, P90: float64(v[2]) / 1000}
	}
	known := *p
	if known.Tasks[0] == 0 { // of before anything was expected
		n := 1000 * int64(max(1, int(s.Rule.FanOut)))
		known.Tasks, known.TaskMS = [3]int64{n, n, n}, [3]int64{1000, 1000, 1000}
	}
	p = &known
	return &forecast.Load{
		Of: of, Schedule: s.ID, Tasks: three(p.Tasks), Seconds: three(p.TaskMS), Lasts: float64(p.LastsMS) / 1000,
		Alone: s.Rule.Overlap != string(calendar.Allow),
	}
}

// MomentsOf are the runs of a timetable after one moment until another, in the middle of their jitter, at most so many.
// Looked says what finding them cost.
func MomentsOf(jitterSeconds int64, table *calendar.Timetable, from, until models.Instant, most int) (fires []forecast.Fire, looked int) {
	moments, looked := table.Moments(from.Time(), until.Time(), most)
	for _, m := range moments {
		fires = append(fires, forecast.Fire{At: models.InstantOf(m.At) + models.Instant(jitterSeconds)*500_000, Runs: int32(m.Runs)})
	}
	return fires, looked
}

// poolOf is the pool with most slots for a schedule's work; without any, the one such work would go to.
func (e *Engine) poolOf(w work) string {
	if pool, known := e.outlook.pools[w]; known {
		return pool
	}
	slots := map[string]int32{}
	lane := e.board.Lanes[w.lane]
	for _, worker := range e.board.Workers { // any order: sums
		if lane != nil && worker.State == models.WorkerActive && e.board.Serves(worker, w.env, lane) && (w.class == 0 || e.board.Fits(worker, w.class)) {
			slots[worker.Pool] += worker.SlotsFor(lane.Kind)
		}
	}
	best := "cpu"
	if c := e.board.Classes[w.class]; c != nil && fit.Cards(c) > 0 {
		best = "gpu"
	}
	most := int32(0)
	for pool, n := range slots { // any order: the most, then the first by name
		if n > most || n == most && n > 0 && pool < best {
			best, most = pool, n
		}
	}
	e.outlook.pools[w] = best
	return best
}

// expectRun is what a run of a schedule is expected to make before any of this kind was seen: by its rule, and by what is
// known of tasks of its type.
func (e *Engine) expectRun(s *schedule, row *models.Schedule, t *Template) {
	p := &s.state.Profile
	if len(t.Tasks) == 0 {
		return
	}
	of := &t.Tasks[0]
	class := e.board.ClassNumber(of.Class)
	if p.Runs > 0 && s.Rule.FanOut == row.Rule.FanOut && s.Rule.Workflow == row.Rule.Workflow && (row.Rule.Workflow || class == p.Class) {
		return
	}
	n := 1000 * int64(max(1, int(row.Rule.FanOut)))
	*p = models.RunProfile{Class: class, Tasks: [3]int64{n, n, n}, TaskMS: e.usualMS(row.Env, class)}
	if lane, err := e.route(row.Env, of.Lane, of.Class.Type, ""); err == nil {
		p.Lane = lane.Number
	}
	if of.EstimateMS > 0 {
		p.TaskMS = [3]int64{of.EstimateMS, of.EstimateMS, of.EstimateMS}
	}
}

// usualMS are the quantiles of what tasks of a class take.
func (e *Engine) usualMS(env, class int32) (out [3]int64) {
	for i, q := range []float64{0.5, 0.7, 0.9} {
		out[i] = max(1, int64(math.Round(e.book.Quantile(e.board.TenantOf(env), class, q)*1000)))
	}
	return out
}
