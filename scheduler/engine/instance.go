package engine

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"nightshift/models"
	"nightshift/scheduler/calendar"
)

// payloadMost is how large a payload may become by what is filled in.
const payloadMost = 256 << 10

// MostRunTasks is how many tasks one run makes: they become rows of one batch.
const MostRunTasks = 1000

// Template is what a schedule's runs make, as it is kept: the tasks of a workflow, or, where there is no workflow, one
// task that is kept as itself. Each partition has all of the tasks.
type Template struct {
	Workflow *NewWorkflow `json:"workflow"`
	Tasks    []NewTask    `json:"tasks"`
}

// ReadTemplate reads what is kept.
func ReadTemplate(text json.RawMessage) (t Template, err error) {
	if err := json.Unmarshal(text, &t); err != nil || t.Workflow != nil {
		return t, err
	}
	t.Tasks = make([]NewTask, 1)
	return t, json.Unmarshal(text, &t.Tasks[0])
}

// root is the first task that waits for no other.
func (t *Template) root() int {
	return slices.IndexFunc(t.Tasks, func(t NewTask) bool { return len(t.DependsOn) == 0 })
}

// startRun makes the work of a run. What can't be made is a failed run.
func (e *Engine) startRun(s *schedule, work *models.ScheduleWork, r *scheduleRun) {
	e.load(s, r)
	err := e.instantiate(s, work, r)
	e.unload(r)
	if err != nil {
		r.Outcome, r.Cause = string(calendar.Failed), err.Error()
		e.runFailed(s)
		return
	}
	s.open = append(s.open, r)
	e.plans.runs[r.Work()] = r
}

// instantiate makes the tasks of a run from the template: one task alone, or a workflow of all of them.
func (e *Engine) instantiate(s *schedule, work *models.ScheduleWork, r *scheduleRun) error {
	t, err := ReadTemplate(work.Task)
	if err != nil {
		return fmt.Errorf("its work can't be read: %w", err)
	}
	r.spread = -1
	submit := &Submit{Env: s.Env, InBatch: true, Single: t.Workflow == nil && s.Rule.Partitions <= 1 && len(r.taken) <= 1}
	if submit.Tasks, err = e.copies(s, &t, r); err != nil {
		return err
	}
	if !submit.Single {
		submit.Workflow = e.flowOfRun(s, &t, r)
	}
	placements, err := e.resolve(submit)
	if err != nil {
		return err
	}
	flow, err := e.bornFlow(submit.Env, submit.Workflow, int64(len(submit.Tasks)), &Submitted{})
	if err != nil {
		return err
	}
	changes, inside := make([]*change, len(placements)), map[models.ID]*change{}
	for i, p := range placements {
		changes[i] = e.makeTask(submit, p, flow)
		inside[changes[i].row.ID] = changes[i]
		if i%len(t.Tasks) == t.root() {
			r.made = append(r.made, changes[i].row.ID)
		}
	}
	for i, p := range placements {
		e.link(s.Env, changes[i], p, inside, nil)
	}
	e.noteWork(s, changes)
	for i, c := range changes {
		e.enterNew(c, &submit.Tasks[i])
	}
	if submit.Single {
		r.Task, r.State = changes[0].row.ID, changes[0].row.State
		return nil
	}
	r.Workflow, r.State = submit.Workflow.ID, models.Running
	return nil
}

// flowOfRun is the workflow of a run: the template's, or that of the partitions of a task.
func (e *Engine) flowOfRun(s *schedule, t *Template, r *scheduleRun) *NewWorkflow {
	w := NewWorkflow{Name: s.Name, Priority: t.Tasks[0].Priority}
	if t.Workflow != nil {
		w = *t.Workflow
	}
	w.ID, w.Schedule = e.newID(), s.ID
	input, err := inputOfRun(w.Input, s, r)
	if err != nil { // it was written by the edge
		input = nil
	}
	w.Input, _ = json.Marshal(input) // texts always encode
	return &w
}

// times is how often a run makes its work: for each partition, or for each portion that it took from a queue.
func (r *scheduleRun) times(s *schedule) int {
	if s.Rule.Drain != nil {
		return max(1, len(r.taken))
	}
	return max(1, int(s.Rule.Partitions))
}

// copies are the tasks of all partitions, each with an id of its own and its payload filled in.
func (e *Engine) copies(s *schedule, t *Template, r *scheduleRun) ([]NewTask, error) {
	count := r.times(s)
	out := make([]NewTask, 0, count*len(t.Tasks))
	values := calendar.Values{
		ScheduledFor: r.ScheduledFor.Time(), RunID: r.ID.Text(models.RunPrefix), PartitionCount: count,
		Watermarks: e.marksOf(s), Vars: e.variables(s.Env).Vars,
	}
	first := int32(0)
	for part := range count {
		ids := make(map[models.ID]models.ID, len(t.Tasks))
		for i := range t.Tasks {
			ids[t.Tasks[i].ID] = e.newID()
		}
		values.PartitionIndex = part
		for i := range t.Tasks {
			task := t.Tasks[i]
			task.ID, task.Schedule, task.Schema = ids[task.ID], s.ID, Unchecked // its payload was checked with the schedule
			if count > 1 || s.Rule.Partitions > 1 {
				task.Key = partitionKey(task.Key, part)
			}
			task.DependsOn = make([]Dependency, len(t.Tasks[i].DependsOn))
			for j, d := range t.Tasks[i].DependsOn {
				task.DependsOn[j] = Dependency{Task: ids[d.Task], On: d.On}
			}
			if s.Rule.Drain != nil && part < len(r.taken) && len(task.DependsOn) == 0 {
				task.Items = portion(first, len(r.taken[part]))
			}
			if err := e.fillIn(s, r, &task, values); err != nil {
				return nil, err
			}
			out = append(out, task)
		}
		if part < len(r.taken) {
			first += int32(len(r.taken[part]))
		}
	}
	return out, nil
}

// portion are the items of a task of a run that drains a queue: they stand beside its payload, in the queue.
func portion(first int32, n int) *models.Items {
	if n == 0 {
		return nil // somebody triggered it while nothing waited
	}
	return &models.Items{First: first, Total: int32(n)}
}

// partitionKey is the key that a task of a partition has in the run's workflow.
func partitionKey(key string, part int) string {
	if key == "" {
		return fmt.Sprint(part)
	}
	return fmt.Sprintf("%s[%d]", key, part)
}

// fillIn gives a task what is its run's own.
func (e *Engine) fillIn(s *schedule, r *scheduleRun, t *NewTask, v calendar.Values) error {
	if t.Payload != nil {
		payload, err := calendar.Expand(string(t.Payload), v, payloadMost)
		if err != nil {
			return err
		}
		t.Payload = json.RawMessage(payload)
	}
	first := len(t.DependsOn) == 0 // the others get what those before them made of it
	if s.Rule.Event != nil && first {
		payload, err := withEvents(t.Payload, r.events())
		if err != nil {
			return err
		}
		t.Payload = payload
	}
	input, err := inputOfRun(t.Input, s, r)
	if err != nil {
		return err
	}
	if s.Rule.Gathers() && first { // so that the claims of others cost no look
		input["fed"] = json.RawMessage(`"` + s.Rule.Kind + `"`)
		if s.Rule.Drain != nil {
			input["portion"] = json.RawMessage(strconv.Itoa(v.PartitionIndex))
		}
	}
	if s.Rule.Partitions > 0 {
		input["partition"], _ = json.Marshal(map[string]int{"index": v.PartitionIndex, "count": v.PartitionCount}) // numbers always encode
	}
	if first {
		if t.RunAt = e.placedAt(s, r); t.RunAt > 0 && t.DelaySeconds == 0 {
			input["run_at"] = json.RawMessage(strconv.FormatInt(int64(t.RunAt), 10)) // it waits for that, and answers it
		}
	}
	t.Input, _ = json.Marshal(input) // texts always encode
	if !first {
		return nil // it starts when the others have ended
	}
	if expires := s.Rule.ExpireSeconds; expires > 0 && !strings.HasPrefix(r.Origin, "backfill:") {
		t.ExpiresInSeconds = int32(max(1, expires-r.LateMS/1000))
	}
	return nil
}

// placedAt is when the work of a run starts that is placed later than its moment; 0: at once, as by hand or made up.
func (e *Engine) placedAt(s *schedule, r *scheduleRun) models.Instant {
	if strings.Contains(r.Origin, ":") {
		return 0
	}
	if r.spread < 0 {
		r.spread = e.placement(s, r.ScheduledFor)
	}
	if r.spread <= 0 {
		return 0
	}
	return max(e.now, r.ScheduledFor).Add(r.spread)
}

// inputOfRun is a task's input with which run made it.
func inputOfRun(input json.RawMessage, s *schedule, r *scheduleRun) (map[string]json.RawMessage, error) {
	members := map[string]json.RawMessage{}
	if len(input) > 0 {
		if err := json.Unmarshal(input, &members); err != nil {
			return nil, fmt.Errorf("the task's input can't be read: %w", err)
		}
	}
	for name, value := range map[string]any{ // any order: a map
		"schedule_id": s.ID.Text(models.SchedulePrefix), "run_id": r.ID.Text(models.RunPrefix), "schedule": s.Name, "scheduled_for": r.ScheduledFor,
	} {
		members[name], _ = json.Marshal(value) // texts and numbers always encode
	}
	return members, nil
}

// marksOf are the watermarks that the payloads ask for, as they stand in this batch.
func (e *Engine) marksOf(s *schedule) map[string]string {
	out := make(map[string]string, len(s.Rule.Marks))
	for _, name := range s.Rule.Marks {
		out[name] = spelled(e.marked(s.Env, name).Value)
	}
	return out
}

// spelled is a JSON value as it stands in a text: a text as itself, anything else as its JSON.
func spelled(value json.RawMessage) string {
	var text string
	if json.Unmarshal(value, &text) == nil {
		return text
	}
	return string(value)
}

// stopWork cancels what a run made.
func (e *Engine) stopWork(r *scheduleRun, why string) {
	if r.Task.IsZero() {
		if f := e.flows[r.Workflow]; f != nil && f.row.Env == r.Env && !f.ended() && !f.row.Cancelling {
			e.stopFlow(f, why, models.Actor{Kind: "brain"})
		}
		return
	}
	if c := e.open(models.TaskRef{Env: r.Env, ID: r.Task}); c != nil {
		e.stop(c, why)
	}
}
