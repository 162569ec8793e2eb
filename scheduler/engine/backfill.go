package engine

import (
	"nightshift/models"
	"nightshift/scheduler/calendar"
)

// mostBackfill is how many occurrences one backfill makes up: they become rows of one batch.
const mostBackfill = 1000

// MostBackfill is how many occurrences of a rule one backfill makes up: fewer where each makes much.
func MostBackfill(r *models.ScheduleRule) int { return max(1, mostBackfill/RunRows(r)) }

// Backfill makes the occurrences of a time that is over, under an overlap policy of its own. It moves nothing.
type Backfill struct {
	Env      int32          `json:"env"`
	Schedule models.ID      `json:"schedule"`
	ID       models.ID      `json:"id"` // minted at the edge
	From     models.Instant `json:"from"`
	To       models.Instant `json:"to"` // both inclusive
	Overlap  string         `json:"overlap"`
	Rows     int            `json:"rows,omitempty"` // what its runs count as in a batch
	Reason   string         `json:"reason,omitempty"`
	Once     *Once          `json:"once,omitempty"`
}

// backfill writes them all or none. What is excluded leaves a row that says so.
func (e *Engine) backfill(cmd *Command) (*Answer, error) {
	x := cmd.Backfill
	if answer, err := e.replay(x.Once); answer != nil || err != nil {
		return answer, err
	}
	s, work, err := e.runnable(x.Env, x.Schedule)
	if err != nil {
		return nil, err
	}
	if _, done := e.b.facts.Done[cmd.ID]; done {
		return &Answer{Made: []models.ID{x.ID}}, nil
	}
	if x.To > e.now {
		return nil, models.Invalid("body.to", "lies in the future: what comes then is made by itself")
	}
	table := e.timetable(s)
	if s.Rule.Gathers() {
		return nil, models.Errorf(models.StateConflict, "a schedule of kind %s has no occurrences to make up: what waits for it is delivered", s.Rule.Kind)
	}
	if s.Rule.FromEnd || table == nil {
		return nil, models.Errorf(models.StateConflict, "an interval that counts from the end of the run before has no occurrences to make up")
	}
	list, more := table.Between(x.From.Time().Add(-1), x.To.Time(), MostBackfill(&s.Rule))
	if more {
		return nil, models.Invalid("body.to", "the range holds more than %d occurrences: ask for a shorter one", MostBackfill(&s.Rule))
	}
	e.touch(s)
	own := s.Rule.Overlap
	s.Rule.Overlap = x.Overlap
	origin := "backfill:" + x.ID.Text(models.BulkPrefix)
	failed := int64(0)
	for _, o := range list {
		f := calendar.Fire{Occurrence: o, Outcome: calendar.Dispatched, Late: e.now.Time().Sub(o.At)}
		if o.Excluded != "" {
			f.Outcome, f.Cause = calendar.Excluded, o.Excluded
		}
		if r := e.occur(s, work, &f, origin, e.runID()); r.Outcome == string(calendar.Failed) {
			failed++
		}
	}
	e.saveCursor(models.Cursor{
		ID: x.ID, Env: x.Env, Kind: models.Backfilled, Target: x.Schedule, Matched: int64(len(list)), Done: int64(len(list)) - failed, Failed: failed,
		Finished: true, Actor: cmd.Actor, At: e.now,
	})
	s.Rule.Overlap = own
	e.appoint(s)
	e.b.plan.Done = append(e.b.plan.Done, cmd.ID)
	e.recordOnce(x.Once, []models.ID{x.ID})
	e.audit(cmd, x.Env, "schedule.backfill", x.Schedule.Text(models.SchedulePrefix), x.Reason)
	return &Answer{Made: []models.ID{x.ID}, Matched: int64(len(list))}, nil
}

// runnable finds a schedule with what it does, as this batch left it, in an environment that takes new work.
func (e *Engine) runnable(env int32, id models.ID) (*schedule, *models.ScheduleWork, error) {
	s, err := e.plans.find(env, id)
	if err != nil {
		return nil, nil, err
	}
	if err := e.takesSubmits(env); err != nil {
		return nil, nil, err
	}
	work := e.workOf(s)
	if work == nil {
		return nil, nil, models.Errorf(models.NotFound, "there is no schedule %s", id.Text(models.SchedulePrefix))
	}
	return s, work, nil
}

// workOf is what a schedule does, as this batch left it; nil when that was not read.
func (e *Engine) workOf(s *schedule) *models.ScheduleWork {
	if saved := e.savedWork(s.ID); saved != nil { // it was edited in this very batch
		return saved
	}
	work, read := e.b.facts.Schedules[s.ref()]
	if !read {
		return nil
	}
	return &work
}
