package engine

import (
	"fmt"
	"slices"
	"time"

	"nightshift/models"
	"nightshift/scheduler/calendar"
)

// How much of what is due one batch takes: 10,000 schedules of one second are worked off between ordinary batches.
const (
	schedulesAtOnce = 200
	rowsAtOnce      = 1000    // tasks made and occurrences decided
	bytesARow       = 8 << 10 // what is larger counts as several
)

// weight is how many rows a run's work counts as.
func (s *schedule) weight() int { return RunRows(&s.Rule) }

// RunRows is how many rows of a batch a run of a rule counts as: its tasks, or more where they are large. Events stand in the
// payload of each task that gets them.
func RunRows(r *models.ScheduleRule) int {
	n := max(1, int(r.FanOut), int(r.Bytes/bytesARow)) * Portions(r)
	if r.Event != nil {
		n += FedTasks(r) * eventsBytes / bytesARow
	}
	return n
}

// due are the first schedules that are due, as many as one batch takes.
func (e *Engine) dueSchedules() []models.ID {
	if e.ease.probing {
		return nil
	}
	ids := e.plans.agenda.Due(e.now, e.eased(min(schedulesAtOnce, e.cfg.Slice)))
	left := e.eased(min(rowsAtOnce, e.cfg.Slice))
	for i, id := range ids {
		if left -= e.plans.all[id].weight(); left < 0 && i > 0 {
			return ids[:i]
		}
	}
	return ids
}

// appoint says when the schedule is to be looked at next.
func (e *Engine) appoint(s *schedule) {
	at := models.Instant(0)
	if s.Rule.Gathers() && (s.waiting == nil || s.running() > 0) {
		at, _ = e.dueGathered(s)
	} else if s.waiting != nil && s.running() == 0 || s.state.Until > 0 {
		at = max(s.state.Mark, 1) // at once
	} else if table := e.timetable(s); table != nil {
		if o, ok := table.Next(s.state.Mark.Time()); ok {
			at = models.InstantOf(o.At)
		}
	}
	if at != 0 && len(e.ease.aside) > 0 {
		at = max(at, e.restsUntil(s.ID))
	}
	e.plans.agenda.Set(s.ID, at)
}

// timetable is nil while nothing can come of it.
func (e *Engine) timetable(s *schedule) *calendar.Timetable {
	if s.table == nil {
		table, err := calendar.Of(&s.Rule, s.CreatedAt)
		if err != nil { // it was checked when it was saved
			return nil
		}
		s.table = table
	}
	if env := e.board.Envs[s.Env]; env != nil {
		s.table.Freezes = calendar.FreezesOf(env.Freezes)
	}
	if !s.Rule.FromEnd {
		return s.table
	}
	if s.running() > 0 || s.waiting != nil {
		return nil
	}
	every := time.Duration(s.Rule.EverySeconds) * time.Second
	at := max(s.state.LastEnd, s.Rule.StartAt, s.CreatedAt).Add(every)
	if at <= s.state.Mark {
		at = s.state.Mark.Add(every)
	}
	rule, err := calendar.Once(at.Time(), s.Rule.Timezone)
	if err != nil {
		return nil
	}
	table := *s.table
	table.Rule = rule
	return &table
}

// needSchedules asks for what the schedules do that are due, and for the tasks that a newer run would cancel.
func (e *Engine) needSchedules(n *models.Need) {
	due := e.dueSchedules()
	if e.ease.took = (models.ID{}); len(due) > 0 && e.Least() {
		e.ease.took = due[0]
	}
	for _, id := range due {
		if s := e.plans.all[id]; s == nil || !s.Rule.Gathers() || len(n.Feeds) < feedsAtOnce {
			e.needSchedule(n, s)
		}
	}
}

func (e *Engine) needSchedule(n *models.Need, s *schedule) {
	if s != nil {
		if s.Rule.Gathers() {
			needGathered(n, s)
		}
		e.needRuns(n, s, s.Rule.Overlap)
	}
}

// needEdited asks for what a schedule does that an edit moves: what is due by then follows the rule that stands.
func (e *Engine) needEdited(n *models.Need, c *Configure) {
	if c.Schedule == nil || c.New {
		return
	}
	if s := e.plans.all[c.Schedule.ID]; s != nil && s.Env == c.Schedule.Env && !s.Rule.Gathers() {
		e.needRuns(n, s, s.Rule.Overlap)
	}
}

func (e *Engine) needRuns(n *models.Need, s *schedule, overlap string) {
	n.Schedules = append(n.Schedules, s.ref())
	for _, name := range s.Rule.Marks {
		n.Watermarks = append(n.Watermarks, models.IdemRef{Env: s.Env, Key: name})
	}
	if len(s.Rule.Vars) > 0 && !slices.Contains(n.Variables, s.Env) {
		n.Variables = append(n.Variables, s.Env)
	}
	if overlap != string(calendar.CancelPrevious) {
		return
	}
	for _, r := range s.open {
		switch {
		case !r.alive():
		case r.Task.IsZero():
			e.needFlow(n, models.TaskRef{Env: r.Env, ID: r.Workflow})
		default:
			n.Tasks = append(n.Tasks, models.TaskRef{Env: r.Env, ID: r.Task})
		}
	}
}

// decideSchedules makes due what is due, a bounded part of it. What was not read yet waits for the next batch.
func (e *Engine) decideSchedules() {
	left := e.eased(min(rowsAtOnce, e.cfg.Slice))
	for _, id := range e.dueSchedules() {
		s := e.plans.all[id]
		work, read := e.b.facts.Schedules[s.ref()]
		if !read {
			continue
		}
		if left -= e.fire(s, &work, left); left <= 0 {
			return
		}
	}
}

// fire decides on what is due of a schedule, about so many rows, and answers how many that were.
func (e *Engine) fire(s *schedule, work *models.ScheduleWork, most int) (n int) {
	e.touch(s)
	if s.waiting != nil && s.running() == 0 {
		e.startWaiting(s, work)
		n += s.weight()
	}
	if s.Rule.Gathers() {
		n += e.fireGathered(s, work)
	} else if table := e.timetable(s); table != nil && n < most {
		now := e.now
		if s.state.Until > 0 {
			now = s.state.Until
		}
		fires, mark, more := table.Due(calendar.Tick{
			Mark: s.state.Mark.Time(), Now: now.Time(), Misfire: calendar.MisfireOf(&s.Rule), Paused: e.standsStill(s), Limit: most - n,
		})
		for i := range fires {
			if n >= most {
				mark, more = fires[i-1].At, true
				break
			}
			if r := e.occur(s, work, &fires[i], "timer", e.runID()); r.Work().IsZero() {
				n++
			} else {
				n += s.weight()
			}
		}
		if s.state.Mark, s.state.Until = models.InstantOf(mark), 0; more {
			s.state.Until = now
		}
	}
	e.appoint(s)
	return n
}

// standsStill says why nothing of a schedule runs, or nothing.
func (e *Engine) standsStill(s *schedule) string {
	env, tenant := e.board.Envs[s.Env], e.board.Tenants[e.board.TenantOf(s.Env)]
	switch {
	case !s.state.Enabled && s.state.PauseReason != "":
		return fmt.Sprintf("paused by %s: %s", s.state.PausedBy, s.state.PauseReason)
	case !s.state.Enabled:
		return "paused by " + s.state.PausedBy
	case !s.on():
		return notEnabled
	case env != nil && env.Paused:
		return "the environment is paused"
	case tenant != nil && tenant.Suspended:
		return "the tenant is suspended"
	}
	return ""
}

// occur writes the run of an occurrence, and makes its work where there is to be any.
func (e *Engine) occur(s *schedule, work *models.ScheduleWork, f *calendar.Fire, origin string, id models.ID) *scheduleRun {
	r := &scheduleRun{of: s, Run: models.Run{
		Env: s.Env, ID: id, Schedule: s.ID, ScheduledFor: models.InstantOf(f.At), Origin: origin, FiredAt: e.now,
		Outcome: string(f.Outcome), Cause: f.Cause, LateMS: f.Late.Milliseconds(),
	}}
	if f.Outcome == calendar.Dispatched {
		e.meet(s, work, r)
	}
	e.record(r)
	e.expect(s, r)
	if r.Outcome != "" {
		e.came(r.Outcome)
	}
	s.state.LastRun, s.state.LastOutcome, s.state.LastFor, s.state.LastLateMS = r.ID, r.Outcome, r.ScheduledFor, r.LateMS
	switch {
	case r.Outcome == string(calendar.Dispatched):
		e.fired(s, r)
	case r.Outcome != "":
		s.state.LastEnd = e.now // an interval that counts from ends goes on from here
		e.scheduleEvent(s, "schedule.skipped", r.Outcome+": "+r.Cause)
	}
	return r
}

const waitsForRun = "it waits for the run before it"

// meet judges an occurrence against the runs before it, as they stand in this batch.
func (e *Engine) meet(s *schedule, work *models.ScheduleWork, r *scheduleRun) {
	v := calendar.Overlapping(s.Rule.Overlap).Meet(calendar.Meeting{Running: s.running() > 0, Waiting: s.waiting != nil})
	if v.SupersedeWaiting {
		e.supersede(s.waiting, v.Cause)
		s.waiting = nil
	}
	if v.CancelRunning {
		for _, before := range slices.Clone(s.open) {
			if !before.alive() {
				continue
			}
			e.supersede(before, v.Cause)
			e.stopWork(before, v.Cause)
		}
	}
	r.Outcome, r.Cause = string(v.Outcome), ""
	switch {
	case v.Wait:
		r.Cause = waitsForRun
		s.waiting = r
	case v.Start:
		e.startRun(s, work, r)
	default:
		r.Cause = v.Cause
	}
}

func (e *Engine) fired(s *schedule, r *scheduleRun) {
	ev := e.scheduleEvent(s, "schedule.fired", "")
	ev.Task, ev.Workflow = r.Task, r.Workflow
}

func (e *Engine) supersede(r *scheduleRun, cause string) {
	r.Outcome, r.Cause = string(calendar.Superseded), cause
	e.came(r.Outcome)
	e.record(r)
	e.heed(r)
}

// startWaiting lets the run that waited go, unless its time is over or nothing may run.
func (e *Engine) startWaiting(s *schedule, work *models.ScheduleWork) {
	r := s.waiting
	s.waiting = nil
	late := e.now.Sub(r.ScheduledFor)
	r.FiredAt, r.LateMS, r.Cause = e.now, late.Milliseconds(), ""
	e.record(r)
	expires := calendar.MisfireOf(&s.Rule).Expires
	if why := e.standsStill(s); why != "" {
		r.Outcome, r.Cause = string(calendar.SkippedPaused), why
	} else if expires > 0 && late > expires {
		r.Outcome, r.Cause = string(calendar.Expired), "it waited for the run before it until its time was over"
	} else {
		r.Outcome = string(calendar.Dispatched)
		e.startRun(s, work, r)
	}
	e.came(r.Outcome)
	e.heed(r)
	if s.state.LastRun == r.ID {
		s.state.LastOutcome, s.state.LastLateMS = r.Outcome, r.LateMS
	}
	if r.Outcome == string(calendar.Dispatched) {
		e.fired(s, r)
		return
	}
	e.scheduleEvent(s, "schedule.skipped", r.Outcome+": "+r.Cause)
}

// runID is later than any before it, so that the runs of one batch are listed in their order.
func (e *Engine) runID() models.ID {
	id, last := e.newID(), e.plans.last
	if id.Compare(last) <= 0 {
		id = last
		i := len(id) - 1
		for ; id[i] == 255; i-- {
			id[i] = 0
		}
		id[i]++
	}
	e.plans.last = id
	return id
}

// placement is how much later than its moment an occurrence starts: the place of its schedule in the window it may be
// moved in, and its own jitter.
func (e *Engine) placement(s *schedule, at models.Instant) time.Duration {
	id := s.ID.Text(models.SchedulePrefix)
	return e.placed(s, at) + calendar.Jitter(id, at.Time(), int(s.Rule.JitterSeconds))
}
