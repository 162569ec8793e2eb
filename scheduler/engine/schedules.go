package engine

import (
	"fmt"
	"reflect"
	"slices"
	"time"

	"nightshift/models"
	"nightshift/scheduler/board"
	"nightshift/scheduler/calendar"
)

// SwitchSchedule pauses a schedule or lets it go on. What was missed meanwhile is not made up: it has its rows.
type SwitchSchedule struct {
	Env     int32     `json:"env"`
	ID      models.ID `json:"id"`
	Enabled bool      `json:"enabled"`
}

// Trigger runs a schedule now, paused or not. It moves nothing.
type Trigger struct {
	Env      int32     `json:"env"`
	Schedule models.ID `json:"schedule"`
	Run      models.ID `json:"run"`            // minted at the edge
	Rows     int       `json:"rows,omitempty"` // what its run counts as in a batch
	Reason   string    `json:"reason,omitempty"`
	Once     *Once     `json:"once,omitempty"`
	Dry      bool      `json:"dry,omitempty"` // nothing is done: the answer says what would be
}

// plans are the schedules and those of their runs that are not over.
type plans struct {
	expected map[models.ID]*scheduleRun // those with a time by which they must have ended
	all      map[models.ID]*schedule
	names    map[scheduleName]models.ID
	runs     map[models.ID]*scheduleRun // by the task or workflow that was made
	agenda   board.Agenda
	dues     board.Agenda // when runs must have ended, by their id
	feeds
	last models.ID // the run's that was made last
}

type scheduleName struct {
	env  int32
	name string
}

// schedule is one of them, without what it does: that is read when it is due.
type schedule struct {
	models.Schedule
	state    models.ScheduleState
	table    *calendar.Timetable // nil: to be made anew
	open     []*scheduleRun      // whose work has not ended, oldest first
	waiting  *scheduleRun        // for the run before it
	touched  bool                // its state stands in the batch
	places   []place             // of one that is flexible: those of its next occurrences, by what is foreseen
	gathered                     // of kind event: what waits for it
}

// scheduleRun is an occurrence that is not over.
type scheduleRun struct {
	models.Run
	taken   [][]models.Message // while its work is being made: what it is about, or portions
	made    []models.ID        // likewise: of each copy of its work the first task that waits for no other
	of      *schedule
	touched bool
	spread  time.Duration // while its work is being made: how much later than its moment it starts, below 0 while that is not decided
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
	return plans{all: map[models.ID]*schedule{}, names: map[scheduleName]models.ID{}, runs: map[models.ID]*scheduleRun{}, expected: map[models.ID]*scheduleRun{}, feeds: newFeeds()}
}

// restoreSchedules makes them anew from a snapshot.
func (e *Engine) restoreSchedules(s *models.ScheduleSnapshot, waiting []models.Waiting) {
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
		if r.DueAt > 0 && r.LateAt == 0 && r.Outcome != string(calendar.Superseded) {
			e.plans.due(r)
		}
		if row.Work().IsZero() {
			of.waiting = r
			continue
		}
		of.open = append(of.open, r)
		e.plans.runs[row.Work()] = r
	}
	e.restoreFeeds(waiting)
	e.outlook.order = e.outlook.order[:0]
	for _, of := range e.plans.all { // any order: each on its own
		e.appoint(of)
		e.outlook.order = append(e.outlook.order, of.ID)
	}
	slices.SortFunc(e.outlook.order, models.ID.Compare)
	e.outlook.changed(e.now)
}

func (p *plans) put(s *schedule) {
	s.Work = models.ScheduleWork{}
	p.all[s.ID] = s
	p.names[scheduleName{s.Env, s.Name}] = s.ID
	p.listen(s)
}

func (p *plans) find(env int32, id models.ID) (*schedule, error) {
	if s := p.all[id]; s != nil && s.Env == env {
		return s, nil
	}
	return nil, models.Errorf(models.NotFound, "there is no schedule %s", id.Text(models.SchedulePrefix))
}

// putSchedule makes a schedule or edits it. An edit makes up nothing from before, and takes nothing away that is due.
func (e *Engine) putSchedule(cmd *Command) (*Answer, error) {
	c := cmd.Configure
	row := *c.Schedule
	if c.New && cmd.Resent && e.plans.all[row.ID] != nil {
		return e.plans.all[row.ID].answer(c.Schedule.Work), nil
	}
	if err := e.takesSubmits(row.Env); c.New && err != nil && models.CodeOf(err) != models.TenantSuspended {
		return nil, err
	}
	if e.board.Envs[row.Env] == nil {
		return nil, models.Errorf(models.NotFound, "there is no such environment")
	}
	template, err := e.checkSchedule(&row)
	if err != nil {
		return nil, err
	}
	s := &schedule{state: models.ScheduleState{Env: row.Env, ID: row.ID, Enabled: true}}
	var before any
	moved := true // it fires at other moments than before
	if c.New {
		row.CreatedAt, row.Version = e.now, 1
		if err := e.maySchedule(&row, nil); err != nil {
			return nil, err
		}
	} else {
		old, err := e.plans.find(row.Env, row.ID)
		if err != nil {
			return nil, err
		}
		if err := fresh(c.Version, old.Version); err != nil {
			return nil, err
		}
		if err := e.maySchedule(&row, &old.Schedule); err != nil {
			return nil, err
		}
		if moved = c.Enabled != nil || !reflect.DeepEqual(row.Rule.Timing(), old.Rule.Timing()); moved {
			e.decideDue(old)
		}
		before = scheduleWords(&old.Schedule, old.on())
		row.CreatedAt, row.Version, s = old.CreatedAt, old.Version+1, old
		delete(e.plans.names, scheduleName{old.Env, old.Name})
	}
	wasOn := !c.New && s.on()
	if c.Enabled != nil {
		row.Rule.Disabled = !*c.Enabled
		s.state.Forced = s.state.Forced && *c.Enabled
	}
	row.UpdatedAt, row.By = e.now, cmd.Actor
	e.b.plan.Schedules.Saved = append(e.b.plan.Schedules.Saved, row)
	feed := s.feed()
	e.expectRun(s, &row, &template)
	s.Schedule = row
	e.refeed(s, feed)
	e.plans.put(s)
	e.outlook.knows(s.ID)
	if wasOn && !s.on() {
		e.scheduleEvent(s, "schedule.paused", notEnabled)
	}
	if moved {
		s.state.Mark, s.state.Until = max(e.now, s.state.Mark), 0
	}
	e.lookAnew(s)
	if c.New {
		e.recordOnce(c.Once, []models.ID{row.ID})
	}
	e.auditChange(cmd, row.Env, row.ID.Text(models.SchedulePrefix), before, scheduleWords(&row, s.on()))
	return s.answer(row.Work), nil
}

// checkSchedule refuses a name, a work or a feed that can't be.
func (e *Engine) checkSchedule(row *models.Schedule) (t Template, err error) {
	if err := e.checkName(row); err != nil {
		return t, err
	}
	if t, err = e.checkWork(row); err != nil {
		return t, err
	}
	return t, e.checkFeed(row)
}

// checkName refuses the name of another schedule.
func (e *Engine) checkName(row *models.Schedule) error {
	if other, taken := e.plans.names[scheduleName{row.Env, row.Name}]; taken && other != row.ID {
		return models.Errorf(models.StateConflict, "there is a schedule %q already", row.Name)
	}
	return nil
}

// checkWork refuses work that could not be made now.
func (e *Engine) checkWork(row *models.Schedule) (t Template, err error) {
	if t, err = ReadTemplate(row.Work.Task); err != nil {
		return t, models.Errorf(models.InvalidRequest, "the schedule's work can't be read: %w", err)
	}
	at := "body.task"
	for i := range t.Tasks {
		if t.Workflow != nil {
			at = fmt.Sprintf("body.workflow.tasks[%d]", i)
		}
		if err := e.mayTake(row.Env, &t.Tasks[i], at); err != nil {
			return t, err
		}
		if _, err := e.route(row.Env, t.Tasks[i].Lane, t.Tasks[i].Class.Type, at); err != nil {
			return t, err
		}
		_, vars := calendar.Placeholders(string(t.Tasks[i].Payload))
		for _, name := range vars {
			if _, set := e.variables(row.Env).Vars[name]; !set {
				return t, models.Invalid(at+".payload", "asks for the variable %q, which is not set", name)
			}
		}
	}
	return t, nil
}

// decideDue decides on what is due of a schedule before it changes: what came before an edit follows the rule that stood, and
// what came before a resume was paused. So nothing that was due in the same moment goes without a row. Of a long outage that is
// still worked through it takes as much as a batch does.
func (e *Engine) decideDue(s *schedule) {
	at := e.plans.agenda.At(s.ID)
	if at == 0 || at > e.now || s.Rule.Gathers() || e.ease.alone || e.ease.probing {
		return // what has gathered stays where it is
	}
	work := &models.ScheduleWork{}
	if e.standsStill(s) == "" {
		if work = e.workOf(s); work == nil {
			return
		}
	}
	e.fire(s, work, e.eased(min(rowsAtOnce, e.cfg.Slice)))
}

// lookAnew says when a schedule that changed is due.
func (e *Engine) lookAnew(s *schedule) {
	s.table, s.places = nil, nil
	e.outlook.changed(e.now)
	delete(e.ease.aside, s.ID)
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
		delete(e.plans.runs, r.Work())
		e.plans.forget(r)
	}
	if s.waiting != nil {
		e.plans.forget(s.waiting)
	}
	e.unfeed(s, s.feed())
	delete(e.plans.all, s.ID)
	e.outlook.forgets(s.ID)
	e.outlook.changed(e.now)
	delete(e.plans.names, scheduleName{s.Env, s.Name})
	e.plans.agenda.Set(s.ID, 0)
	saved := &e.b.plan.Schedules
	saved.Saved = slices.DeleteFunc(saved.Saved, func(o models.Schedule) bool { return o.ID == s.ID })
	saved.Gone = append(saved.Gone, s.ref())
	e.auditChange(cmd, s.Env, s.ID.Text(models.SchedulePrefix), scheduleWords(&s.Schedule, s.on()), nil)
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
	if on := c.SwitchSchedule.Enabled; on != s.on() || !on && s.state.Enabled {
		before := scheduleWords(&s.Schedule, s.on())
		if on {
			e.decideDue(s)
			s.state.Mark, s.state.Until = max(e.now, s.state.Mark), 0
		}
		e.turn(s, on, cmd.Actor.ID, c.Reason)
		e.lookAnew(s)
		e.auditChange(cmd, s.Env, s.ID.Text(models.SchedulePrefix), before, scheduleWords(&s.Schedule, on))
	}
	return s.answer(models.ScheduleWork{}), nil
}

const notEnabled = "it is not enabled"

// on says that its occurrences become work, as far as it alone decides: what operators say comes before what was configured.
func (s *schedule) on() bool { return s.state.Enabled && (!s.Rule.Disabled || s.state.Forced) }

// turn sets what operators set. Whoever lets it go on forgives its failures.
func (e *Engine) turn(s *schedule, on bool, by, reason string) {
	s.state.Enabled, s.state.PausedBy, s.state.PauseReason, s.state.Forced = on, by, reason, on && s.Rule.Disabled
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
