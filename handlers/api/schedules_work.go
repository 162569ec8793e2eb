package api

import (
	"bytes"
	"encoding/json"
	"slices"

	"nightshift/handlers"
	"nightshift/handlers/body"
	"nightshift/models"
	"nightshift/scheduler/calendar"
	"nightshift/scheduler/dag"
	"nightshift/scheduler/engine"
)

// Bounds of what a run makes: it is one step of a batch.
const (
	mostPartitions = engine.MostRunTasks
	mostRunBytes   = 4 << 20 // of inputs and payloads, before anything is filled in
	mostPartKey    = maxKeyBytes - len("[999]")
)

// task reads the template of a task.
func (d *scheduleDraft) task(v body.Value) {
	if v.Null() {
		d.drop(false)
		return
	}
	d.given = append(d.given, "task")
	d.tasks.loose = bytes.Contains(v.Text, []byte("{{")) // what stands there is not known yet
	task := d.tasks.task(v)
	d.template(v.At, &task)
	d.keep(v, task, false)
}

// workflow reads the template of a workflow.
func (d *scheduleDraft) workflow(v body.Value) {
	if v.Null() {
		d.drop(true)
		return
	}
	d.given = append(d.given, "workflow")
	r := *d.tasks // it shares the problems, not the keys
	r.graph, r.loose = dag.New(), bytes.Contains(v.Text, []byte("{{"))
	f := &flowReader{tasks: &r, at: v.At, outside: -1}
	v.Members(func(name string, m body.Value) {
		if name != "tasks" {
			_ = f.member(name, m) // it notes what is wrong
			return
		}
		if m.Null() || !m.IsArray() {
			m.Wrong("must be a list of tasks")
			return
		}
		n := m.Elements(func(i int, e body.Value) {
			if i < engine.MostRunTasks && !d.problem.Full() {
				_ = f.task(i, e)
			}
		})
		if f.given.tasks = n > 0; n > engine.MostRunTasks {
			m.Wrong("a schedule's workflow has at most %d tasks", engine.MostRunTasks)
		}
	})
	f.close()
	d.denied = r.denied
	if d.problem.Any() {
		return
	}
	if d.unsound = f.sound(); d.unsound != nil {
		return
	}
	if f.outside >= 0 {
		d.problem.Addf(body.Dot(body.At(body.Dot(v.At, "tasks"), f.outside), "depends_on"), "a schedule's workflow waits for tasks of its own alone, by their keys")
	}
	lookAhead(f.pending)
	for i := range f.pending {
		d.template(body.At(body.Dot(v.At, "tasks"), i), &f.pending[i])
	}
	input, err := json.Marshal(f.input)
	if err != nil {
		d.problem.Addf(v.At, "can't be kept: %s", err)
		return
	}
	flow := &engine.NewWorkflow{Name: f.name, Priority: r.priority, Stops: f.stops, Budget: f.budget, Input: input}
	d.keep(v, engine.Template{Workflow: flow, Tasks: f.pending}, true)
}

// drop takes work away that null was given for.
func (d *scheduleDraft) drop(flow bool) {
	if d.rule.Workflow == flow && len(d.given) == 0 {
		d.row.Work = models.ScheduleWork{}
	}
}

func (d *scheduleDraft) keep(v body.Value, template any, flow bool) {
	text, err := json.Marshal(template)
	if err != nil {
		d.problem.Addf(v.At, "can't be kept: %s", err)
		return
	}
	d.rule.Workflow, d.row.Work = flow, models.ScheduleWork{Task: text, Given: json.RawMessage(v.Text)}
}

// template refuses what only one task can have: runs make many.
func (d *scheduleDraft) template(at string, t *engine.NewTask) {
	t.Trace = "" // each run begins one of its own
	for _, one := range []struct {
		name  string
		given bool
	}{{"run_at", t.RunAt > 0}, {"idempotency_key", t.IdemKey != ""}, {"dedupe", t.Dedupe != nil}, {"budget", t.Own != nil}} {
		if one.given {
			d.problem.Addf(body.Dot(at, one.name), "a schedule's task has none: it is made anew for each run")
		}
	}
	if t.Key == "" && len(t.DependsOn) > 0 {
		d.problem.Addf(body.Dot(at, "depends_on"), "a schedule's task has none: it is made anew for each run")
	}
	for _, name := range calendar.Unknown(string(t.Payload)) {
		d.problem.Addf(body.Dot(at, "payload"), "there is no placeholder {{%s}}; there are scheduled_for, run_id, partition.index, partition.count, watermark.NAME and vars.NAME",
			handlers.Shorten(name, 60))
	}
	marks, _ := calendar.Placeholders(string(t.Payload))
	for _, name := range marks {
		if !handlers.IsName(name) {
			d.problem.Addf(body.Dot(at, "payload"), "{{watermark.%s}} is no name of a watermark", handlers.Shorten(name, 60))
		}
	}
}

// weighWork notes what is known of the work without reading it, and refuses more than one batch holds.
func (d *scheduleDraft) weighWork() {
	if d.problem.Any() || d.row.Work.Task == nil {
		return
	}
	at := workField(d.rule)
	t, err := engine.ReadTemplate(d.row.Work.Task)
	if err != nil {
		d.problem.Addf(at, "can't be read: %s", err)
		return
	}
	d.rule.Marks, d.rule.Vars, d.rule.Fed = nil, nil, 0
	var bytes int64
	for i := range t.Tasks {
		task := &t.Tasks[i]
		marks, vars := calendar.Placeholders(string(task.Payload))
		d.rule.Marks, d.rule.Vars = append(d.rule.Marks, marks...), append(d.rule.Vars, vars...)
		bytes += int64(len(task.Payload) + len(task.Input))
		if len(task.DependsOn) == 0 {
			d.rule.Fed++
		}
		if (d.rule.Partitions > 1 || d.rule.Drain != nil) && len(task.Key) > mostPartKey {
			d.problem.Addf(body.Dot(taskField(d.rule, i), "key"), "in partitions and portions a key has at most %d bytes", mostPartKey)
		}
	}
	d.rule.Marks, d.rule.Vars = sole(d.rule.Marks), sole(d.rule.Vars)
	parts := max(1, int(d.rule.Partitions))
	d.rule.FanOut, d.rule.Bytes = int32(len(t.Tasks)*parts), bytes*int64(parts)
	if d.rule.Drain != nil { // how many portions there are is another matter
		d.rule.FanOut, d.rule.Bytes = int32(len(t.Tasks)), bytes
	}
	switch {
	case len(t.Tasks)*parts > engine.MostRunTasks:
		d.problem.Addf("body.partitions", "a run makes at most %d tasks, and these would be %d", engine.MostRunTasks, len(t.Tasks)*parts)
	case d.rule.Bytes > mostRunBytes:
		d.problem.Addf(at, "the payloads of a run have at most %d bytes together, and these have %d", mostRunBytes, d.rule.Bytes)
	}
}

func sole(names []string) []string {
	slices.Sort(names)
	return slices.Compact(names)
}
