package engine_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"nightshift/models"
	"nightshift/scheduler/engine"
)

// drainer makes a schedule that empties the queue "mail": ten items a run, four a task.
func (w *world) drainer(name string, change ...func(*models.ScheduleRule)) models.TaskRef {
	w.t.Helper()
	return w.schedule(name, func(s *models.Schedule) {
		s.Rule = models.ScheduleRule{Kind: "drain", Overlap: "allow", Drain: &models.DrainRule{Queue: "mail", MaxItems: 10, BatchSize: 4}}
		for _, c := range change {
			c(&s.Rule)
		}
	})
}

// fill puts n numbered items into the queue "mail".
func (w *world) fill(from, n int) *engine.Published {
	w.t.Helper()
	cmd := w.publishing("mail")
	cmd.Publish.Source = models.FromQueue
	for i := range n {
		cmd.Publish.Messages = append(cmd.Publish.Messages, engine.NewMessage{ID: w.id(), Data: json.RawMessage(fmt.Sprint(from + i))})
	}
	return w.do(cmd).Published
}

func TestADrainEmptiesItsQueueInPortions(t *testing.T) {
	w := newWorld(t, engine.Config{})
	if p := w.fill(0, 5); p.Depth != 5 || p.New != 5 || p.Matched != 0 {
		t.Errorf("into a queue that nobody drains: %+v", p)
	}
	w.advance(time.Minute)
	of := w.drainer("s")
	w.eventsAre(of, "0 1 2 3 4") // what waited before it too
	w.fill(5, 25)
	w.advance(900 * time.Millisecond)
	w.eventsAre(of, "0 1 2 3 4") // at most once a second
	w.advance(100 * time.Millisecond)
	w.advance(3 * time.Second)
	w.eventsAre(of, "0 1 2 3 4 | 5 6 7 8 9 10 11 12 13 14 | 15 16 17 18 19 20 21 22 23 24 | 25 26 27 28 29")
	runs := w.store.Runs(of)
	if r := runs[1]; r.Origin != "drain" || r.Workflow.IsZero() || !r.Task.IsZero() || r.LateMS != 0 {
		t.Errorf("a run is %+v", r)
	}
	_, by := w.store.Taken(models.TaskRef{Env: w.env, ID: runs[1].ID})
	portions := map[models.ID]int{}
	for _, task := range by {
		portions[task]++
	}
	if len(portions) != 3 || portions[by[0]] != 4 || portions[by[9]] != 2 {
		t.Errorf("the portions are %v", portions)
	}
	spec, ok := w.store.Spec(models.TaskRef{Env: w.env, ID: by[4]})
	if !ok || !strings.Contains(string(spec.Input), `"fed":"drain"`) || strings.Contains(string(spec.Payload), "events") {
		t.Errorf("its task is %s %s", spec.Input, spec.Payload)
	}
	w.fill(30, 1)
	w.advance(time.Second)
	if r := w.store.Runs(of)[4]; r.Task.IsZero() || !r.Workflow.IsZero() {
		t.Errorf("of one portion it is %+v", r)
	}
	if q := w.do(&engine.Command{Look: &engine.Look{Queues: w.env}}).Looked.Queues; len(q) != 1 || q[0].Depth != 0 || len(q[0].Schedules) != 1 {
		t.Errorf("the queues are %+v", q)
	}
}

func TestADrainWaitsForWhatHindersIt(t *testing.T) {
	w := newWorld(t, engine.Config{})
	of := w.drainer("s", func(r *models.ScheduleRule) { r.Overlap = "skip"; r.Drain.MaxItems = 4 })
	w.fill(0, 6)
	w.advance(10 * time.Second)
	w.eventsAre(of, "0 1 2 3") // the first runs: the rest waits, and nothing is said of it each second
	worker := w.worker("one", func(r *models.Worker) { r.LeaseSeconds = 300 })
	w.settle(worker, ok(w.claim(worker, 1)[0]))
	w.eventsAre(of, "0 1 2 3 | 4 5")
	w.settle(worker, ok(w.claim(worker, 1)[0]))
	w.turnSchedule(of, false)
	w.fill(6, 2)
	w.advance(time.Minute)
	w.eventsAre(of, "0 1 2 3 | 4 5")
	w.trigger(of) // by hand it drains, paused or not
	w.eventsAre(of, "0 1 2 3 | 4 5 | 6 7")
	w.settle(worker, ok(w.claim(worker, 1)[0]))
	w.fill(8, 1)
	w.turnSchedule(of, true)
	w.advance(time.Second)
	w.eventsAre(of, "0 1 2 3 | 4 5 | 6 7 | 8")
	if got := w.outcomes(of); strings.Contains(got, "skipped") {
		t.Errorf("the runs are %s", got)
	}
}

// fedRule makes a schedule of a rule whose runs are workflows: two tasks that wait for nothing, and one for the first.
func (w *world) fedRule(name string, rule models.ScheduleRule) models.TaskRef {
	return w.flowSchedule(name, func(s *models.Schedule, t *engine.Template) {
		other := w.task(func(t *engine.NewTask) { t.Key, t.MaxAttempts, t.Payload = "c", 1, json.RawMessage(`{"c":1}`) })
		t.Tasks = append(t.Tasks, other)
		s.Rule = rule
		s.Rule.Workflow, s.Rule.Fed, s.Rule.FanOut = true, 2, 3
	})
}

// portions are what each task of a run was handed, by its key.
func (w *world) portions(of models.TaskRef, run models.ID) map[string]string {
	w.t.Helper()
	messages, _ := w.store.Taken(models.TaskRef{Env: of.Env, ID: run})
	by := map[int32][]string{}
	n := int32(0)
	for i, t := range w.store.Takes(models.TaskRef{Env: of.Env, ID: run}) {
		if t.N != int32(i) || t.Task.IsZero() {
			w.t.Errorf("a take is %+v", t)
		}
		for range t.Count {
			by[t.N] = append(by[t.N], string(messages[n].Data))
			n++
		}
	}
	out := map[string]string{}
	for _, task := range w.store.Tasks() {
		spec, _ := w.store.Spec(models.TaskRef{Env: of.Env, ID: task.ID})
		var in struct {
			Fed     string
			RunID   string `json:"run_id"`
			Portion *int32
		}
		w.must(json.Unmarshal(spec.Input, &in))
		switch {
		case in.RunID != run.Text(models.RunPrefix):
		case in.Fed == "":
			out[task.Key] = "-"
		default:
			out[task.Key] = strings.Join(by[*in.Portion], " ")
		}
	}
	return out
}

func TestADrainMakesAWorkflowAPortion(t *testing.T) {
	w := newWorld(t, engine.Config{})
	of := w.fedRule("s", models.ScheduleRule{Kind: "drain", Overlap: "allow", Drain: &models.DrainRule{Queue: "mail", MaxItems: 10, BatchSize: 4}})
	w.fill(0, 6)
	w.advance(time.Second)
	w.flowsAre(of, "dispatched/running")
	w.eventsAre(of, "0 1 2 3 4 5")
	got := w.portions(of, w.store.Runs(of)[0].ID)
	if want := "map[a[0]:0 1 2 3 a[1]:4 5 b[0]:- b[1]:- c[0]:0 1 2 3 c[1]:4 5]"; fmt.Sprint(got) != want {
		t.Errorf("the portions are\n%v\nwant\n%s", got, want)
	}
	w.rebuild()
	w.work(w.worker("one"), ok)
	w.flowsAre(of, "dispatched/succeeded")
	w.fill(6, 1)
	w.advance(time.Second)
	if got := w.portions(of, w.store.Runs(of)[1].ID); fmt.Sprint(got) != "map[a:6 b:- c:6]" {
		t.Errorf("of one portion: %v", got)
	}
}

func TestPartitionsShareADrainsItemsAlike(t *testing.T) {
	w := newWorld(t, engine.Config{})
	of := w.drainer("s", func(r *models.ScheduleRule) {
		r.Partitions = 4
		r.Drain = &models.DrainRule{Queue: "mail", MaxItems: 100, BatchSize: 5}
	})
	w.fill(0, 30)
	w.advance(3 * time.Second)
	var sizes []string
	for _, run := range w.store.Runs(of) {
		var of []int32
		for _, t := range w.store.Takes(models.TaskRef{Env: run.Env, ID: run.ID}) {
			of = append(of, t.Count)
		}
		sizes = append(sizes, fmt.Sprint(of))
	}
	if got := strings.Join(sizes, " "); got != "[5 5 5 5] [3 3 2 2]" {
		t.Errorf("the runs took %s", got)
	}
	w.fill(30, 1)
	w.advance(time.Second)
	run := w.store.Runs(of)[2]
	if run.Workflow.IsZero() {
		t.Errorf("one item: %+v", run)
	}
	w.trigger(of) // of nothing it makes its work once
	if n := len(w.store.Takes(models.TaskRef{Env: of.Env, ID: w.store.Runs(of)[3].ID})); n != 0 {
		t.Errorf("of an empty queue %d portions were taken", n)
	}
	if n := len(w.store.Tasks()); n != 10 {
		t.Errorf("there are %d tasks", n)
	}
}

func TestTwoDrainsShareAQueue(t *testing.T) {
	w := newWorld(t, engine.Config{})
	one, two := w.drainer("one"), w.drainer("two")
	w.fill(0, 17)
	w.advance(5 * time.Second)
	seen := map[string]int{}
	for _, of := range []models.TaskRef{one, two} {
		for _, n := range strings.Fields(strings.ReplaceAll(w.events(of), "|", "")) {
			seen[n]++
		}
	}
	if len(seen) != 17 {
		t.Errorf("taken: %v", seen)
	}
	for n, times := range seen { // any order
		if times != 1 {
			t.Errorf("item %s was taken %d times", n, times)
		}
	}
}

func TestItemsAreBoundedBySizeAndKeys(t *testing.T) {
	w := newWorld(t, engine.Config{})
	cmd := w.publishing("mail")
	cmd.Publish.Source = models.FromQueue
	for i := range 8 {
		m := engine.NewMessage{ID: w.id(), Data: json.RawMessage(`"` + strings.Repeat("x", 60_000) + `"`), Key: fmt.Sprint("k", i/2)}
		cmd.Publish.Messages = append(cmd.Publish.Messages, m)
	}
	if p := w.do(cmd).Published; p.New != 4 || p.Depth != 4 || !p.Messages[1].Deduplicated || p.Messages[1].ID != p.Messages[0].ID {
		t.Errorf("published %+v", p)
	}
	w.fill(0, 3)
	cmd = w.publishing("mail", `"`+strings.Repeat("y", 63_000)+`"`)
	cmd.Publish.Source = models.FromQueue
	w.do(cmd)
	of := w.drainer("s", func(r *models.ScheduleRule) { r.Drain.BatchSize = 10 })
	w.advance(3 * time.Second)
	var portions []int
	for _, r := range w.store.Runs(of) {
		_, by := w.store.Taken(models.TaskRef{Env: r.Env, ID: r.ID})
		n := map[models.ID]int{}
		for _, task := range by {
			n[task]++
		}
		for i, task := range by {
			if i == 0 || by[i-1] != task {
				portions = append(portions, n[task])
			}
		}
	}
	if fmt.Sprint(portions) != "[7 1]" {
		t.Errorf("the portions are %v", portions)
	}
}

// Items of a queue are like those of a batch: what a worker names as failed is tried again without the others, and what is left
// after the last try is the dead letter; another life tries it anew.
func TestItemsOfAQueueThatFailAreTriedAgainAlone(t *testing.T) {
	w := newWorld(t, engine.Config{})
	worker := w.worker("one")
	w.fill(0, 6)
	of := w.schedule("s", func(s *models.Schedule) {
		s.Rule = models.ScheduleRule{Kind: "drain", Overlap: "allow", Drain: &models.DrainRule{Queue: "mail", MaxItems: 10, BatchSize: 4}}
		s.Work.Task, _ = json.Marshal(w.task()) // three attempts
	})
	w.advance(2 * time.Second)
	run := w.store.Runs(of)[0]
	if run.Workflow.IsZero() {
		t.Fatalf("the run is %+v", run)
	}
	var first, second engine.Lease
	for _, l := range w.claim(worker, 2) {
		if w.items(l.Row.ID).Total == 4 {
			first = l
		} else {
			second = l
		}
	}
	task := first.Row.ID
	if s := w.items(second.Row.ID); s.First != 4 || s.Total != 2 || s.Workflow != run.Workflow {
		t.Fatalf("the second task's items are %+v", s)
	}
	w.settle(worker, ok(second))
	if s := w.items(second.Row.ID); s.Done != 2 {
		t.Fatalf("done, its items are %+v", s)
	}
	w.settle(worker, items(first, "network", 1, 2))
	w.want(task, models.RetryWait)
	w.rebuild()
	w.advance(5 * time.Second)
	if got := w.carried(task); len(got) != 2 || got[0] != 1 || got[1] != 2 {
		t.Fatalf("the second attempt carries %v", got)
	}
	w.settle(worker, items(w.claim(worker, 1)[0], "network", 0)) // of the two claimed, the first
	w.advance(10 * time.Second)
	if got := w.carried(task); len(got) != 1 || got[0] != 1 {
		t.Fatalf("the third attempt carries %v", got)
	}
	w.settle(worker, items(w.claim(worker, 1)[0], "network", 0))
	w.want(task, models.DeadLetter)
	if s := w.items(task); s.Done != 3 || len(s.Left) != 1 || s.Left[0].Index != 1 || s.Left[0].Class != "network" {
		t.Fatalf("what is left is %+v", s)
	}
	if _, err := w.try(&engine.Command{Redrive: &engine.Redrive{Env: w.env, Task: task, Payload: json.RawMessage(`{"mode":"slow"}`), Reason: "again"}}); err == nil {
		t.Fatal("a slice's payload was replaced")
	}
	w.do(&engine.Command{Redrive: &engine.Redrive{Env: w.env, Task: task, Payload: json.RawMessage(`{"mode":"slow"}`), Apart: true, Reason: "again"}})
	w.settle(worker, ok(w.claim(worker, 1)[0]))
	w.want(task, models.Succeeded)
	w.flowIs(run.Workflow, models.WorkflowSucceeded)
	if s := w.items(task); s.Done != 4 || len(s.Left) != 0 {
		t.Fatalf("in the end %+v", s)
	}
}
