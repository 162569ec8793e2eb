package memory

import (
	"maps"
	"slices"

	"nightshift/models"
)

// scheduleRows are schedules and their runs.
type scheduleRows struct {
	schedules map[models.TaskRef]models.Schedule
	states    map[models.TaskRef]models.ScheduleState
	runs      map[models.TaskRef]models.Run
	openRuns  map[models.TaskRef]bool // whose work has not ended, or that wait
	moments   map[moment]models.ID
	versions  map[models.TaskRef][]models.Schedule
	variables map[int32]models.Variables
	madeBy    map[models.TaskRef]models.ID // the schedule of a task
}

// moment is what a run alone may have.
type moment struct {
	schedule models.TaskRef
	at       models.Instant
	origin   string
}

func newScheduleRows() scheduleRows {
	return scheduleRows{
		schedules: map[models.TaskRef]models.Schedule{}, states: map[models.TaskRef]models.ScheduleState{}, runs: map[models.TaskRef]models.Run{},
		openRuns: map[models.TaskRef]bool{}, moments: map[moment]models.ID{}, versions: map[models.TaskRef][]models.Schedule{},
		variables: map[int32]models.Variables{}, madeBy: map[models.TaskRef]models.ID{},
	}
}

func momentOf(r *models.Run) moment {
	return moment{models.TaskRef{Env: r.Env, ID: r.Schedule}, r.ScheduledFor, r.Origin}
}

// checkSchedules looks at what must be one thing's alone.
func (s *Store) checkSchedules(p *models.Plan) error {
	gone := make([]models.TaskRef, 0, len(p.Schedules.Gone))
	gone = append(gone, p.Schedules.Gone...)
	if err := clash(s.schedules, p.Schedules.Saved, gone, func(v models.Schedule) (models.TaskRef, []any) {
		return models.TaskRef{Env: v.Env, ID: v.ID}, []any{[2]any{v.Env, v.Name}}
	}); err != nil {
		return err
	}
	made := map[moment]models.ID{}
	for i := range p.Schedules.Runs {
		r := &p.Schedules.Runs[i]
		m := momentOf(r)
		for _, taken := range []map[moment]models.ID{s.moments, made} {
			if other, is := taken[m]; is && other != r.ID {
				return models.Errorf(models.BadData, "schedule %s has two runs of one moment", r.Schedule.Text(models.SchedulePrefix))
			}
		}
		made[m] = r.ID
	}
	return nil
}

// schedule writes what a batch made of schedules.
func (s *Store) schedule(p *models.SchedulePlan) {
	for _, ref := range p.Gone {
		delete(s.schedules, ref)
		delete(s.states, ref)
		delete(s.versions, ref)
	}
	for _, v := range p.Saved {
		ref := models.TaskRef{Env: v.Env, ID: v.ID}
		v.Rule.Exclude, v.Rule.Marks, v.Rule.Vars = slices.Clone(v.Rule.Exclude), slices.Clone(v.Rule.Marks), slices.Clone(v.Rule.Vars)
		s.schedules[ref] = v
		s.versions[ref] = append(s.versions[ref], v)
	}
	for _, v := range p.States {
		s.states[models.TaskRef{Env: v.Env, ID: v.ID}] = v
	}
	for _, r := range p.Runs {
		ref := models.TaskRef{Env: r.Env, ID: r.ID}
		s.runs[ref] = r
		s.moments[momentOf(&r)] = r.ID
		if delete(s.openRuns, ref); r.Open() {
			s.openRuns[ref] = true
		}
	}
	for _, t := range p.Tasks {
		s.madeBy[models.TaskRef{Env: t.Env, ID: t.Task}] = t.Schedule
	}
	for _, v := range p.Vars {
		v.Vars = maps.Clone(v.Vars)
		s.variables[v.Env] = v
	}
}

// scheduleSnapshot is what an engine keeps of them.
func (s *Store) scheduleSnapshot() (out models.ScheduleSnapshot) {
	for _, v := range sorted(s.schedules, compareRefs) {
		v.Work = models.ScheduleWork{}
		out.Schedules = append(out.Schedules, v)
	}
	out.States = sorted(s.states, compareRefs)
	open := map[models.TaskRef]models.Run{}
	for ref := range s.openRuns { // any order: sorted below
		r := s.runs[ref]
		if _, stands := s.schedules[models.TaskRef{Env: r.Env, ID: r.Schedule}]; !stands {
			continue
		}
		if !r.Task.IsZero() {
			r.State = s.tasks[models.TaskRef{Env: r.Env, ID: r.Task}].State
		}
		open[ref] = r
	}
	out.Runs = sorted(open, compareRefs)
	return out
}

// works are what schedules do, where they are there.
func (s *Store) works(refs []models.TaskRef) map[models.TaskRef]models.ScheduleWork {
	out := map[models.TaskRef]models.ScheduleWork{}
	for _, ref := range refs {
		if v, ok := s.schedules[ref]; ok {
			out[ref] = v.Work
		}
	}
	return out
}

// Runs are the runs of a schedule, in the order they were made.
func (s *Store) Runs(of models.TaskRef) (out []models.Run) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.runs { // any order: sorted below
		if r.Env == of.Env && r.Schedule == of.ID {
			out = append(out, r)
		}
	}
	slices.SortFunc(out, func(a, b models.Run) int { return a.ID.Compare(b.ID) })
	return out
}

// MadeBy is the schedule whose run made a task, zero when none did.
func (s *Store) MadeBy(task models.TaskRef) models.ID {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.madeBy[task]
}

// ScheduleState is what stands of a schedule.
func (s *Store) ScheduleState(of models.TaskRef) (models.ScheduleState, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	state, ok := s.states[of]
	return state, ok
}
