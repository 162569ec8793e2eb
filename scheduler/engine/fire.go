package engine

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"nightshift/models"
	"nightshift/scheduler/calendar"
)

// How much of what is due one batch takes: 10,000 schedules of one second are worked off between ordinary batches.
const (
	schedulesAtOnce = 200
	runsAtOnce      = 1000
)

// payloadMost is how large a payload may become by what is filled in.
const payloadMost = 256 << 10

// appoint says when the schedule is to be looked at next.
func (e *Engine) appoint(s *schedule) {
	at := models.Instant(0)
	if s.waiting != nil && s.running() == 0 || s.state.Until > 0 {
		at = max(s.state.Mark, 1) // at once
	} else if table := s.timetable(); table != nil {
		if o, ok := table.Next(s.state.Mark.Time()); ok {
			at = models.InstantOf(o.At)
		}
	}
	e.plans.agenda.Set(s.ID, at)
}

// timetable is nil while nothing can come of it.
func (s *schedule) timetable() *calendar.Timetable {
	if s.table == nil {
		table, err := calendar.Of(&s.Rule, s.CreatedAt)
		if err != nil { // it was checked when it was saved
			return nil
		}
		s.table = table
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
	for _, id := range e.plans.agenda.Due(e.now, min(schedulesAtOnce, e.cfg.Slice)) {
		e.needSchedule(n, e.plans.all[id])
	}
}

func (e *Engine) needSchedule(n *models.Need, s *schedule) {
	if s != nil {
		e.needRuns(n, s, s.Rule.Overlap)
	}
}

func (e *Engine) needRuns(n *models.Need, s *schedule, overlap string) {
	n.Schedules = append(n.Schedules, s.ref())
	if overlap != string(calendar.CancelPrevious) {
		return
	}
	for _, r := range s.open {
		if r.alive() {
			n.Tasks = append(n.Tasks, models.TaskRef{Env: r.Env, ID: r.Task})
		}
	}
}

// decideSchedules makes due what is due, a bounded part of it. What was not read yet waits for the next batch.
func (e *Engine) decideSchedules() {
	left := min(runsAtOnce, e.cfg.Slice)
	for _, id := range e.plans.agenda.Due(e.now, min(schedulesAtOnce, e.cfg.Slice)) {
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

// fire decides on what is due of a schedule, at most so many occurrences, and answers how many that were.
func (e *Engine) fire(s *schedule, work *models.ScheduleWork, most int) (n int) {
	e.touch(s)
	if s.waiting != nil && s.running() == 0 {
		e.startWaiting(s, work)
		n++
	}
	if table := s.timetable(); table != nil && n < most {
		now := e.now
		if s.state.Until > 0 {
			now = s.state.Until
		}
		fires, mark, more := table.Due(calendar.Tick{
			Mark: s.state.Mark.Time(), Now: now.Time(), Misfire: calendar.MisfireOf(&s.Rule), Paused: e.standsStill(s), Limit: most - n,
		})
		for i := range fires {
			e.occur(s, work, &fires[i], "timer", e.runID())
		}
		n += len(fires)
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
	s.state.LastRun, s.state.LastOutcome, s.state.LastFor, s.state.LastLateMS = r.ID, r.Outcome, r.ScheduledFor, r.LateMS
	switch {
	case r.Outcome == string(calendar.Dispatched):
		ev := e.scheduleEvent(s, "schedule.fired", "")
		ev.Task = r.Task
	case r.Outcome != "":
		s.state.LastEnd = e.now // an interval that counts from ends goes on from here
		e.scheduleEvent(s, "schedule.skipped", r.Outcome+": "+r.Cause)
	}
	return r
}

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
			if c := e.open(models.TaskRef{Env: before.Env, ID: before.Task}); c != nil {
				e.stop(c, v.Cause)
			}
		}
	}
	r.Outcome, r.Cause = string(v.Outcome), ""
	switch {
	case v.Wait:
		r.Cause = "it waits for the run before it"
		s.waiting = r
	case v.Start:
		e.startRun(s, work, r)
	default:
		r.Cause = v.Cause
	}
}

func (e *Engine) supersede(r *scheduleRun, cause string) {
	r.Outcome, r.Cause = string(calendar.Superseded), cause
	e.record(r)
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
	if s.state.LastRun == r.ID {
		s.state.LastOutcome, s.state.LastLateMS = r.Outcome, r.LateMS
	}
	if r.Outcome == string(calendar.Dispatched) {
		ev := e.scheduleEvent(s, "schedule.fired", "")
		ev.Task = r.Task
		return
	}
	e.scheduleEvent(s, "schedule.skipped", r.Outcome+": "+r.Cause)
}

// startRun makes the work of a run. What can't be made is a failed run.
func (e *Engine) startRun(s *schedule, work *models.ScheduleWork, r *scheduleRun) {
	c, err := e.instantiate(s, work, r)
	if err != nil {
		r.Outcome, r.Cause = string(calendar.Failed), err.Error()
		e.runFailed(s)
		return
	}
	r.Task, r.State = c.row.ID, c.row.State
	s.open = append(s.open, r)
	e.plans.runs[r.Task] = r
}

// instantiate makes the task of a run from the stored template.
func (e *Engine) instantiate(s *schedule, work *models.ScheduleWork, r *scheduleRun) (*change, error) {
	var t NewTask
	if err := json.Unmarshal(work.Task, &t); err != nil {
		return nil, fmt.Errorf("the task can't be read: %w", err)
	}
	at, id := r.ScheduledFor.Time(), r.ID.Text(models.RunPrefix)
	payload, err := calendar.Expand(string(t.Payload), calendar.Values{ScheduledFor: at, RunID: id, PartitionCount: 1}, payloadMost)
	if err != nil {
		return nil, err
	}
	if t.Payload != nil {
		t.Payload = json.RawMessage(payload)
	}
	if t.Input, err = inputOfRun(t.Input, s.ID.Text(models.SchedulePrefix), id); err != nil {
		return nil, err
	}
	t.ID = e.newID()
	if r.Origin == "timer" {
		if spread := calendar.Jitter(s.ID.Text(models.SchedulePrefix), at, int(s.Rule.JitterSeconds)); spread > 0 {
			t.RunAt = max(e.now, r.ScheduledFor).Add(spread)
		}
	}
	if expires := s.Rule.ExpireSeconds; expires > 0 && !strings.HasPrefix(r.Origin, "backfill:") {
		t.ExpiresInSeconds = int32(max(1, expires-r.LateMS/1000))
	}
	submit := &Submit{Env: s.Env, Tasks: []NewTask{t}, Single: true, InBatch: true}
	placements, err := e.resolve(submit)
	if err != nil {
		return nil, err
	}
	c := e.makeTask(submit, placements[0], nil)
	e.enterNew(c, &submit.Tasks[0])
	return c, nil
}

// inputOfRun notes in a task's input which run made it.
func inputOfRun(input json.RawMessage, schedule, run string) (json.RawMessage, error) {
	members := map[string]json.RawMessage{}
	if len(input) > 0 {
		if err := json.Unmarshal(input, &members); err != nil {
			return nil, fmt.Errorf("the task's input can't be read: %w", err)
		}
	}
	members["schedule_id"], members["run_id"] = json.RawMessage(`"`+schedule+`"`), json.RawMessage(`"`+run+`"`)
	return json.Marshal(members)
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
