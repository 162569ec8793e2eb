package engine

import (
	"fmt"
	"reflect"
	"slices"

	"nightshift/models"
	"nightshift/scheduler/calendar"
)

// runMoved follows the task of a run to its end, and back where a dead letter gets another life.
func (e *Engine) runMoved(c *change) {
	if r := e.plans.runs[c.row.ID]; r != nil {
		if c.row.State == models.Succeeded || c.row.State == models.Failed {
			e.learnRun(r, &c.row, nil)
		}
		e.workMoved(r, c.row.State)
	}
}

// flowMoved follows the workflow of a run likewise.
func (e *Engine) flowMoved(f *flow) {
	if r := e.plans.runs[f.row.ID]; r != nil {
		if to := f.asTask(); to != r.State {
			if to == models.Succeeded || to == models.Failed {
				e.learnRun(r, nil, f)
			}
			e.workMoved(r, to)
		}
	}
}

// asTask is where a workflow stands in the words of tasks. A failed one of which something may still move again is a dead
// letter; one of which nothing started in time has expired.
func (f *flow) asTask() models.State {
	c := &f.row.Counts
	switch f.row.State {
	case models.WorkflowFailed:
		if c.Left() > 0 || c[models.DeadLetter] > 0 {
			return models.DeadLetter
		}
		return models.Failed
	case models.WorkflowCancelled:
		return models.Cancelled
	case models.WorkflowSucceeded:
		if c[models.Expired] > 0 && c[models.Succeeded] == 0 {
			return models.Expired
		}
		return models.Succeeded
	}
	return models.Running
}

// workMoved notes where the work of a run stands now.
func (e *Engine) workMoved(r *scheduleRun, to models.State) {
	s := r.of
	wasDead := r.State == models.DeadLetter
	r.State = to
	e.record(r)
	if r.State.Final() {
		r.FinishedAt = e.now
		delete(e.plans.runs, r.Work())
		s.open = slices.DeleteFunc(s.open, func(o *scheduleRun) bool { return o == r })
	}
	if r.State == models.Expired && r.Outcome == string(calendar.Dispatched) {
		r.Outcome, r.Cause = string(calendar.Expired), "it did not start in time"
		e.came(r.Outcome)
		if s.state.LastRun == r.ID {
			s.state.LastOutcome = r.Outcome
		}
	}
	switch {
	case r.State == models.Succeeded:
		s.state.Failures, s.state.LastSuccess = 0, e.now
	case (r.State == models.Failed || r.State == models.DeadLetter) && !wasDead:
		e.runFailed(s)
	}
	e.heed(r)
	if !wasDead && (r.State.Final() || r.State == models.DeadLetter) {
		s.state.LastEnd = e.now
	}
	e.touch(s)
	e.appoint(s)
}

// runFailed counts failures in a row; too many pause the schedule.
func (e *Engine) runFailed(s *schedule) {
	s.state.Failures++
	if most := s.Rule.MostFailures; most > 0 && s.state.Failures >= most && s.state.Enabled {
		s.state.Enabled, s.state.PausedBy = false, "failures"
		s.state.PauseReason = fmt.Sprintf("%d runs in a row failed", s.state.Failures)
		e.scheduleEvent(s, "schedule.paused", s.state.PauseReason)
	}
}

// trigger runs a schedule now. The overlap policy judges this run too.
func (e *Engine) trigger(cmd *Command) (*Answer, error) {
	x := cmd.Trigger
	if answer, err := e.replay(x.Once); answer != nil || err != nil {
		return answer, err
	}
	if x.Dry {
		return e.rehearseRun(x)
	}
	s, work, err := e.runnable(x.Env, x.Schedule)
	if err != nil {
		return nil, err
	}
	if _, done := e.b.facts.Done[cmd.ID]; done {
		return &Answer{Made: []models.ID{x.Run}}, nil
	}
	e.touch(s)
	f := calendar.Fire{Occurrence: calendar.Occurrence{At: e.now.Time()}, Outcome: calendar.Dispatched}
	r := e.occur(s, work, &f, "manual:"+x.Run.Text(models.RunPrefix), x.Run)
	e.appoint(s)
	e.b.plan.Done = append(e.b.plan.Done, cmd.ID)
	e.recordOnce(x.Once, []models.ID{x.Run})
	e.audit(cmd, x.Env, "schedule.trigger", x.Schedule.Text(models.SchedulePrefix), x.Reason)
	answer := &Answer{Made: []models.ID{x.Run}}
	e.b.fill = append(e.b.fill, func() { row := r.Run; answer.Run = &row })
	return answer, nil
}

func (e *Engine) savedWork(id models.ID) *models.ScheduleWork {
	saved := e.b.plan.Schedules.Saved
	for i := range slices.Backward(saved) {
		if saved[i].ID == id {
			return &saved[i].Work
		}
	}
	return nil
}

// checkSchedules says where what is kept of schedules differs from the rows.
func (e *Engine) checkSchedules(s *models.ScheduleSnapshot) error {
	if len(s.Schedules) != len(e.plans.all) {
		return fmt.Errorf("%d schedules are kept, the rows say %d", len(e.plans.all), len(s.Schedules))
	}
	for _, row := range s.Schedules {
		if got := e.plans.all[row.ID]; got == nil || got.Version != row.Version || !reflect.DeepEqual(got.Rule, row.Rule) {
			return fmt.Errorf("schedule %x: %+v is kept, the row says %+v", row.ID, got, row)
		}
	}
	for _, row := range s.States {
		if got := e.plans.all[row.ID]; got == nil || got.state != row {
			return fmt.Errorf("the state of schedule %x: %+v is kept, the row says %+v", row.ID, got, row)
		}
	}
	waiting := 0
	for _, got := range e.plans.all { // any order: a sum
		if got.waiting != nil {
			waiting++
		}
	}
	for _, row := range s.Runs {
		got := e.plans.runs[row.Work()]
		if row.Work().IsZero() {
			got = e.plans.all[row.Schedule].waiting
		}
		if got == nil || got.ID != row.ID || got.Outcome != row.Outcome || got.alive() != (&scheduleRun{Run: row}).alive() {
			return fmt.Errorf("run %x: %+v is kept, the row says %+v", row.ID, got, row)
		}
	}
	if err := e.checkDues(s); err != nil {
		return err
	}
	if len(s.Runs) != len(e.plans.runs)+waiting {
		return fmt.Errorf("%d runs are open and %d wait, the rows say %d", len(e.plans.runs), waiting, len(s.Runs))
	}
	return nil
}
