package engine

import (
	"encoding/json"
	"slices"

	"nightshift/models"
	"nightshift/scheduler/board"
	"nightshift/scheduler/calendar"
)

// SwitchSchedule pauses a schedule or lets it go on. What was missed meanwhile is not made up.
type SwitchSchedule struct {
	Env     int32     `json:"env"`
	ID      models.ID `json:"id"`
	Enabled bool      `json:"enabled"`
}

// Trigger runs a schedule now, paused or not. It moves nothing.
type Trigger struct {
	Env      int32     `json:"env"`
	Schedule models.ID `json:"schedule"`
	Run      models.ID `json:"run"` // minted at the edge
	Once     *Once     `json:"once,omitempty"`
}

// plans are the schedules and those of their runs that are not over.
type plans struct {
	all    map[models.ID]*schedule
	names  map[scheduleName]models.ID
	runs   map[models.ID]*scheduleRun // by the task that was made
	agenda board.Agenda
	last   models.ID // the run's that was made last
}

type scheduleName struct {
	env  int32
	name string
}

// schedule is one of them, without what it does: that is read when it is due.
type schedule struct {
	models.Schedule
	state   models.ScheduleState
	table   *calendar.Timetable // nil: to be made anew
	open    []*scheduleRun      // whose work has not ended, oldest first
	waiting *scheduleRun        // for the run before it
	touched bool                // its state stands in the batch
}

// scheduleRun is an occurrence that is not over.
type scheduleRun struct {
	models.Run
	of      *schedule
	touched bool
}

// alive says that the run's work is neither final nor dead, and nothing newer has taken its place.
func (r *scheduleRun) alive() bool {
	return r.Outcome == string(calendar.Dispatched) && r.State != models.DeadLetter
}

func (s *schedule) running() (n int) {
	for _, r := range s.open {
		if r.alive() {
			n++
		}
	}
	return n
}

func (s *schedule) ref() models.TaskRef { return models.TaskRef{Env: s.Env, ID: s.ID} }

func newPlans() plans {
	return plans{all: map[models.ID]*schedule{}, names: map[scheduleName]models.ID{}, runs: map[models.ID]*scheduleRun{}}
}

// restoreSchedules makes them anew from a snapshot.
func (e *Engine) restoreSchedules(s *models.ScheduleSnapshot) {
	last := e.plans.last
	e.plans = newPlans()
	e.plans.last = last
	for _, row := range s.Schedules {
		e.plans.put(&schedule{Schedule: row})
	}
	for _, state := range s.States {
		if of := e.plans.all[state.ID]; of != nil {
			of.state = state
		}
	}
	for _, row := range s.Runs {
		of := e.plans.all[row.Schedule]
		if of == nil {
			continue
		}
		r := &scheduleRun{Run: row, of: of}
		if row.Task.IsZero() {
			of.waiting = r
			continue
		}
		of.open = append(of.open, r)
		e.plans.runs[row.Task] = r
	}
	for _, of := range e.plans.all { // any order: each on its own
		e.appoint(of)
	}
}

func (p *plans) put(s *schedule) {
	s.Work = models.ScheduleWork{}
	p.all[s.ID] = s
	p.names[scheduleName{s.Env, s.Name}] = s.ID
}

func (p *plans) find(env int32, id models.ID) (*schedule, error) {
	if s := p.all[id]; s != nil && s.Env == env {
		return s, nil
	}
	return nil, models.Errorf(models.NotFound, "there is no schedule %s", id.Text(models.SchedulePrefix))
}

// putSchedule makes a schedule or edits it. An edit makes up nothing from before.
func (e *Engine) putSchedule(cmd *Command) (*Answer, error) {
	c := cmd.Configure
	row := *c.Schedule
	if c.New && cmd.Resent && e.plans.all[row.ID] != nil {
		return e.plans.all[row.ID].answer(c.Schedule.Work), nil
	}
	if e.board.Envs[row.Env] == nil {
		return nil, models.Errorf(models.NotFound, "there is no such environment")
	}
	if other, taken := e.plans.names[scheduleName{row.Env, row.Name}]; taken && other != row.ID {
		return nil, models.Errorf(models.StateConflict, "there is a schedule %q already", row.Name)
	}
	if err := e.checkWork(row.Env, &row.Work); err != nil {
		return nil, err
	}
	s := &schedule{state: models.ScheduleState{Env: row.Env, ID: row.ID, Enabled: true}}
	if c.New {
		row.CreatedAt, row.Version = e.now, 1
	} else {
		old, err := e.plans.find(row.Env, row.ID)
		if err != nil {
			return nil, err
		}
		if err := fresh(c.Version, old.Version); err != nil {
			return nil, err
		}
		row.CreatedAt, row.Version, s = old.CreatedAt, old.Version+1, old
		delete(e.plans.names, scheduleName{old.Env, old.Name})
	}
	row.UpdatedAt, row.By = e.now, cmd.Actor
	e.b.plan.Schedules.Saved = append(e.b.plan.Schedules.Saved, row)
	s.Schedule = row
	e.plans.put(s)
	if on := c.Enabled; on != nil && *on != s.state.Enabled {
		e.turn(s, *on, cmd.Actor.ID, c.Reason)
	}
	e.beginAnew(s)
	if c.New {
		e.recordOnce(c.Once, []models.ID{row.ID})
	}
	e.audit(cmd, row.Env, c.Action, row.ID.Text(models.SchedulePrefix), c.Reason)
	return s.answer(row.Work), nil
}

// checkWork refuses a task that could not be made now.
func (e *Engine) checkWork(env int32, work *models.ScheduleWork) error {
	var t NewTask
	if err := json.Unmarshal(work.Task, &t); err != nil {
		return models.Errorf(models.InvalidRequest, "the schedule's task can't be read: %w", err)
	}
	_, err := e.route(env, t.Lane, t.Class.Type, "body.task")
	return err
}

// beginAnew moves the mark to now.
func (e *Engine) beginAnew(s *schedule) {
	s.state.Mark, s.state.Until, s.table = e.now, 0, nil
	e.touch(s)
	e.appoint(s)
}

func (e *Engine) deleteSchedule(cmd *Command) (*Answer, error) {
	c := cmd.Configure
	s, err := e.plans.find(c.DeleteSchedule.Env, c.DeleteSchedule.ID)
	if err != nil {
		return nil, err
	}
	if err := fresh(c.Version, s.Version); err != nil {
		return nil, err
	}
	for _, r := range s.open {
		delete(e.plans.runs, r.Task)
	}
	delete(e.plans.all, s.ID)
	delete(e.plans.names, scheduleName{s.Env, s.Name})
	e.plans.agenda.Set(s.ID, 0)
	saved := &e.b.plan.Schedules
	saved.Saved = slices.DeleteFunc(saved.Saved, func(o models.Schedule) bool { return o.ID == s.ID })
	saved.Gone = append(saved.Gone, s.ref())
	e.audit(cmd, s.Env, c.Action, s.ID.Text(models.SchedulePrefix), c.Reason)
	return s.answer(models.ScheduleWork{}), nil
}

func (e *Engine) switchSchedule(cmd *Command) (*Answer, error) {
	c := cmd.Configure
	s, err := e.plans.find(c.SwitchSchedule.Env, c.SwitchSchedule.ID)
	if err != nil {
		return nil, err
	}
	if err := fresh(c.Version, s.Version); err != nil {
		return nil, err
	}
	if on := c.SwitchSchedule.Enabled; on != s.state.Enabled {
		e.turn(s, on, cmd.Actor.ID, c.Reason)
		e.beginAnew(s)
		e.audit(cmd, s.Env, c.Action, s.ID.Text(models.SchedulePrefix), c.Reason)
	}
	return s.answer(models.ScheduleWork{}), nil
}

// turn sets what operators set. Whoever lets it go on forgives its failures.
func (e *Engine) turn(s *schedule, on bool, by, reason string) {
	s.state.Enabled, s.state.PausedBy, s.state.PauseReason = on, by, reason
	if on {
		s.state.PausedBy, s.state.PauseReason, s.state.Failures = "", "", 0
		return
	}
	e.scheduleEvent(s, "schedule.paused", reason)
}

func (s *schedule) answer(work models.ScheduleWork) *Answer {
	row, state := s.Schedule, s.state
	row.Work = work
	return &Answer{Schedule: &row, ScheduleState: &state, Made: []models.ID{s.ID}}
}

// touch notes that the schedule's state goes into the plan, as it stands at the end of the batch.
func (e *Engine) touch(s *schedule) {
	if !s.touched {
		s.touched = true
		e.b.schedules = append(e.b.schedules, s)
	}
}

func (e *Engine) record(r *scheduleRun) {
	if !r.touched {
		r.touched = true
		e.b.runs = append(e.b.runs, r)
	}
}

// finishSchedules writes what the batch made of schedules. Those that it deleted leave nothing.
func (e *Engine) finishSchedules() {
	p := &e.b.plan.Schedules
	for _, s := range e.b.schedules {
		s.touched = false
		if e.plans.all[s.ID] == s {
			p.States = append(p.States, s.state)
		}
	}
	for _, r := range e.b.runs {
		r.touched = false
		p.Runs = append(p.Runs, r.Run)
	}
}

func (e *Engine) scheduleEvent(s *schedule, name, reason string) *models.Event {
	e.b.plan.Events = append(e.b.plan.Events, models.Event{Env: s.Env, Name: name, At: e.now, Schedule: s.ID, Reason: reason})
	return &e.b.plan.Events[len(e.b.plan.Events)-1]
}
