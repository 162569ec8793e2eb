package engine

import (
	"nightshift/models"
	"nightshift/scheduler/calendar"
)

// Rehearsed says what a new schedule, or a run by hand, would come to. Nothing of it is done.
type Rehearsed struct {
	Dry        []DryTask      `json:"dry,omitempty"`        // of the tasks of its work, in order
	Refusals   []models.Error `json:"refusals,omitempty"`   // why it would be refused
	Outcome    string         `json:"outcome,omitempty"`    // of the run; empty: it would wait
	Cause      string         `json:"cause,omitempty"`      // of the outcome
	Times      int            `json:"times,omitempty"`      // how often the run would make its work
	Taken      int64          `json:"taken,omitempty"`      // what it would take of what waits
	Cancels    int            `json:"cancels,omitempty"`    // runs that it would cancel
	Supersedes bool           `json:"supersedes,omitempty"` // the one that waits
}

func (r *Rehearsed) refuse(err error) {
	if known, ok := err.(*models.Error); ok { //nolint:errorlint // the engine's own, never wrapped
		r.Refusals = append(r.Refusals, *known)
	}
}

// foreseeWork looks at the tasks of a template, once.
func (r *Rehearsed) foreseeWork(e *Engine, env int32, work *models.ScheduleWork) (*Template, error) {
	t, err := ReadTemplate(work.Task)
	if err != nil {
		return nil, models.Errorf(models.InvalidRequest, "the schedule's work can't be read: %w", err)
	}
	r.Dry = e.dry(&Submit{Env: env, Tasks: t.Tasks, Single: t.Workflow == nil}).Dry
	return &t, nil
}

// rehearseSchedule says what a new schedule would be refused for, and where its work would go.
func (e *Engine) rehearseSchedule(row models.Schedule) (*Answer, error) {
	if e.board.Envs[row.Env] == nil {
		return nil, models.Errorf(models.NotFound, "there is no such environment")
	}
	out := &Rehearsed{}
	row.CreatedAt = e.now
	_, work := e.checkWork(&row)
	for _, err := range []error{e.checkName(&row), work, e.checkFeed(&row), e.maySchedule(&row, nil)} {
		out.refuse(err)
	}
	_, err := out.foreseeWork(e, row.Env, &row.Work)
	return &Answer{Rehearsed: out}, err
}

// rehearseRun says what would become of a run by hand.
func (e *Engine) rehearseRun(x *Trigger) (*Answer, error) {
	s, err := e.plans.find(x.Env, x.Schedule)
	if err != nil {
		return nil, err
	}
	out := &Rehearsed{}
	if err := e.takesSubmits(x.Env); err != nil {
		out.refuse(err)
		return &Answer{Rehearsed: out}, nil
	}
	_, work, err := e.runnable(x.Env, x.Schedule)
	if err != nil {
		return nil, err
	}
	t, err := out.foreseeWork(e, x.Env, work)
	if err != nil {
		return nil, err
	}
	v := calendar.Overlapping(s.Rule.Overlap).Meet(calendar.Meeting{Running: s.running() > 0, Waiting: s.waiting != nil})
	if out.Outcome, out.Supersedes = string(v.Outcome), v.SupersedeWaiting; v.CancelRunning {
		out.Cancels = s.running()
	}
	switch {
	case v.Wait:
		out.Cause = waitsForRun
	case !v.Start:
		out.Cause = v.Cause
	default:
		e.rehearseWork(s, t, x, out)
	}
	return &Answer{Rehearsed: out}, nil
}

// rehearseWork makes the tasks of a run for nobody, to see whether they could be made.
func (e *Engine) rehearseWork(s *schedule, t *Template, x *Trigger, out *Rehearsed) {
	r := &scheduleRun{of: s, taken: e.offered(s), Run: models.Run{
		Env: s.Env, ID: x.Run, Schedule: s.ID, ScheduledFor: e.now, FiredAt: e.now, Origin: "manual:" + x.Run.Text(models.RunPrefix),
	}}
	for _, part := range r.taken {
		out.Taken += int64(len(part))
	}
	tasks, err := e.copies(s, t, r)
	if err == nil {
		_, err = e.resolve(&Submit{Env: s.Env, InBatch: true, Tasks: tasks, Single: len(tasks) == 1})
	}
	if out.Times = r.times(s); err != nil {
		out.Outcome, out.Cause = string(calendar.Failed), err.Error()
	}
}
