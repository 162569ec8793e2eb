package engine_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"nightshift/models"
	"nightshift/models/storetest"
	"nightshift/scheduler/engine"
)

// flowSchedule makes one whose runs are workflows: b waits for a.
func (w *world) flowSchedule(name string, change ...func(*models.Schedule, *engine.Template)) models.TaskRef {
	w.t.Helper()
	a := w.task(func(t *engine.NewTask) { t.Key, t.MaxAttempts = "a", 1 })
	b := w.task(func(t *engine.NewTask) {
		t.Key, t.MaxAttempts, t.Payload = "b", 1, json.RawMessage(`{"part":"{{partition.index}} of {{partition.count}}"}`)
		t.DependsOn = []engine.Dependency{{Task: a.ID, On: models.OnSucceeded}}
	})
	tmpl := engine.Template{Workflow: &engine.NewWorkflow{Name: "nightly", Input: json.RawMessage(`{}`)}, Tasks: []engine.NewTask{a, b}}
	return w.schedule(name, func(s *models.Schedule) {
		s.Rule.Workflow, s.Rule.FanOut = true, 2
		for _, c := range change {
			c(s, &tmpl)
		}
		text, err := json.Marshal(tmpl)
		w.must(err)
		s.Work.Task = text
	})
}

// flowOutcomes are what became of a schedule's runs, with the state of their workflows.
func (w *world) flowOutcomes(of models.TaskRef) string {
	var words []string
	for _, r := range w.store.Runs(of) {
		word := r.Outcome
		if word == "" {
			word = "waits"
		}
		if !r.Workflow.IsZero() {
			row, ok := w.store.Workflow(models.TaskRef{Env: of.Env, ID: r.Workflow})
			if !ok {
				w.t.Fatalf("the workflow of %+v is not there", r)
			}
			word += "/" + row.State.String()
		}
		words = append(words, word)
	}
	return strings.Join(words, " ")
}

func (w *world) flowsAre(of models.TaskRef, want string) {
	w.t.Helper()
	if got := w.flowOutcomes(of); got != want {
		w.t.Fatalf("the runs are\n%s\nwant\n%s", got, want)
	}
}

// work does what one worker finds until it finds no more.
func (w *world) work(worker models.Worker, end func(engine.Lease) engine.Result) (n int) {
	w.t.Helper()
	for {
		leases := w.claim(worker, 10)
		if len(leases) == 0 {
			return n
		}
		for _, l := range leases {
			w.settle(worker, end(l))
			n++
		}
	}
}

func TestARunMayBeAWorkflow(t *testing.T) {
	w := newWorld(t, engine.Config{})
	of := w.flowSchedule("s", func(s *models.Schedule, _ *engine.Template) { s.Rule.Overlap = "queue_one" })
	w.advance(30 * time.Second)
	w.flowsAre(of, "dispatched/running superseded waits")
	run := w.store.Runs(of)[0]
	if run.Workflow.IsZero() || !run.Task.IsZero() || run.State != models.Running || run.FinishedAt != 0 {
		t.Fatalf("the run is %+v", run)
	}
	worker := w.worker("one")
	w.settle(worker, ok(w.claim(worker, 1)[0]))
	w.flowsAre(of, "dispatched/running superseded waits")
	w.rebuild()
	w.settle(worker, ok(w.claim(worker, 1)[0]))
	w.flowsAre(of, "dispatched/succeeded superseded dispatched/running")
	if r := w.store.Runs(of)[0]; r.State != models.Succeeded || r.FinishedAt != w.now {
		t.Errorf("after its end the run is %+v", r)
	}
	if state, _ := w.store.ScheduleState(of); state.LastSuccess != w.now {
		t.Errorf("the state is %+v", state)
	}
	for _, task := range w.store.Tasks() {
		if got := w.store.MadeBy(models.TaskRef{Env: of.Env, ID: task.ID}); got != of.ID {
			t.Errorf("task %s is of %x", task.Key, got)
		}
	}
}

func TestPartitionsAreOneWorkflow(t *testing.T) {
	w := newWorld(t, engine.Config{})
	of := w.schedule("s", func(s *models.Schedule) {
		s.Rule.Partitions, s.Rule.FanOut = 3, 3
		s.Work.Task = json.RawMessage(`{"class":{"type":"work"},"max_attempts":1,"input":{},"payload":{"n":"{{partition.index}}/{{partition.count}}"}}`)
	})
	w.advance(10 * time.Second)
	w.flowsAre(of, "dispatched/running")
	seen := map[string]string{}
	for _, task := range w.store.Tasks() {
		spec, _ := w.store.Spec(models.TaskRef{Env: of.Env, ID: task.ID})
		var in struct {
			Partition    struct{ Index, Count int }
			ScheduledFor models.Instant `json:"scheduled_for"`
		}
		w.must(json.Unmarshal(spec.Input, &in))
		seen[task.Key] = fmt.Sprint(string(spec.Payload), in.Partition.Index, in.Partition.Count)
		if in.ScheduledFor != w.store.Runs(of)[0].ScheduledFor {
			t.Errorf("the input is %s", spec.Input)
		}
	}
	for i := range 3 {
		if want := fmt.Sprintf(`{"n":"%d/3"}%d 3`, i, i); seen[fmt.Sprint(i)] != want {
			t.Errorf("partition %d is %q, want %q", i, seen[fmt.Sprint(i)], want)
		}
	}
	both := w.flowSchedule("both", func(s *models.Schedule, _ *engine.Template) { s.Rule.Partitions, s.Rule.FanOut = 2, 4 })
	w.advance(10 * time.Second)
	keys := map[string]int{}
	for _, task := range w.store.Tasks() {
		if w.store.MadeBy(models.TaskRef{Env: of.Env, ID: task.ID}) == both.ID {
			keys[task.Key] += 1 + int(task.Remaining)
		}
	}
	if fmt.Sprint(keys) != "map[a[0]:1 a[1]:1 b[0]:2 b[1]:2]" {
		t.Errorf("the workflow has %v", keys)
	}
}

func TestCancelPreviousCancelsTheWorkflow(t *testing.T) {
	w := newWorld(t, engine.Config{})
	of := w.flowSchedule("s", func(s *models.Schedule, _ *engine.Template) { s.Rule.Overlap = "cancel_previous" })
	w.advance(10 * time.Second)
	worker := w.worker("one", func(r *models.Worker) { r.LeaseSeconds = 300 })
	lease := w.claim(worker, 1)[0]
	w.takeOver()
	w.advance(10 * time.Second)
	w.flowsAre(of, "superseded/running dispatched/running")
	w.settle(worker, failed(lease, "internal"))
	w.flowsAre(of, "superseded/cancelled dispatched/running")
	if r := w.store.Runs(of)[0]; r.State != models.Cancelled || r.FinishedAt == 0 {
		t.Errorf("the run is %+v", r)
	}
}

func TestFailuresOfWorkflowsAreCountedByTheirEnd(t *testing.T) {
	w := newWorld(t, engine.Config{})
	of := w.flowSchedule("s", func(s *models.Schedule, _ *engine.Template) { s.Rule.MostFailures = 2 })
	worker := w.worker("one")
	for range 2 {
		w.advance(10 * time.Second)
		w.work(worker, func(l engine.Lease) engine.Result { return failed(l, "invalid_input") })
	}
	w.flowsAre(of, "dispatched/failed dispatched/failed")
	if state, _ := w.store.ScheduleState(of); state.Enabled || state.PausedBy != "failures" || state.Failures != 2 {
		t.Fatalf("the state is %+v", state)
	}
	if r := w.store.Runs(of)[0]; r.State != models.DeadLetter || r.FinishedAt != 0 {
		t.Errorf("a run whose dead letter may live again is %+v", r)
	}
	dead := w.store.Runs(of)[0].Workflow
	w.turnSchedule(of, true)
	w.takeOver()
	w.do(&engine.Command{ID: w.id(), Steer: &engine.Steer{Env: of.Env, Workflow: dead, Retry: true}})
	w.flowsAre(of, "dispatched/running dispatched/failed")
	w.advance(10 * time.Second)
	w.flowsAre(of, "dispatched/running dispatched/failed skipped_overlap")
	w.work(worker, ok)
	w.flowsAre(of, "dispatched/succeeded dispatched/failed skipped_overlap")
	if state, _ := w.store.ScheduleState(of); state.Failures != 0 || state.LastSuccess != w.now {
		t.Errorf("after its success the state is %+v", state)
	}
}

func TestAWorkflowThatDoesNotStartInTimeExpires(t *testing.T) {
	w := newWorld(t, engine.Config{})
	of := w.flowSchedule("s", func(s *models.Schedule, _ *engine.Template) { s.Rule.ExpireSeconds = 4 })
	w.advance(14 * time.Second)
	w.flowsAre(of, "expired/succeeded")
	if state, _ := w.store.ScheduleState(of); state.LastSuccess != 0 || state.LastOutcome != "expired" {
		t.Errorf("the state is %+v", state)
	}
}

func TestWhatCannotBeMadeIsAFailedRun(t *testing.T) {
	w := newWorld(t, engine.Config{})
	of := w.flowSchedule("s", func(_ *models.Schedule, tmpl *engine.Template) { tmpl.Workflow.Budget.Tasks = 1 })
	w.advance(10 * time.Second)
	w.flowsAre(of, "failed")
	if r := w.store.Runs(of)[0]; !strings.Contains(r.Cause, "max_tasks") || len(w.store.Tasks()) != 0 {
		t.Errorf("the run is %+v, %d tasks", r, len(w.store.Tasks()))
	}
}

func TestPayloadsAskForWatermarksAndVariables(t *testing.T) {
	w := newWorld(t, engine.Config{})
	set := func(vars map[string]string, version int64) error {
		_, err := w.try(&engine.Command{Configure: &engine.Configure{Variables: &models.Variables{Env: w.env, Vars: vars}, Version: version, Action: "variables.set"}})
		return err
	}
	asks := func(s *models.Schedule) {
		s.Rule.Marks, s.Rule.Vars, s.Rule.Overlap = []string{"docs", "none"}, []string{"city"}, "allow"
		s.Work.Task = json.RawMessage(`{"class":{"type":"work"},"max_attempts":1,"input":{},"payload":{"a":"{{watermark.docs}}|{{watermark.none}}|{{vars.city}}"}}`)
	}
	row := models.Schedule{Env: w.env, ID: w.id(), Name: "early", Rule: models.ScheduleRule{Kind: "interval", EverySeconds: 10}}
	asks(&row)
	if _, err := w.try(&engine.Command{Configure: &engine.Configure{Schedule: &row, New: true}}); models.CodeOf(err) != models.ValidationFailed || !strings.Contains(err.Error(), "city") {
		t.Fatalf("a variable that is not set: %v", err)
	}
	w.must(set(map[string]string{"city": `Lus"aka`}, 1))
	if err := set(map[string]string{}, 7); models.CodeOf(err) != models.Stale {
		t.Errorf("another version: %v", err)
	}
	w.do(&engine.Command{ID: w.id(), Mark: &engine.Mark{Env: w.env, Name: "docs", Value: json.RawMessage(`{"n": "x\\y"}`)}})
	of := w.schedule("s", asks)
	w.advance(10 * time.Second)
	spec, _ := w.store.Spec(models.TaskRef{Env: w.env, ID: w.store.Runs(of)[0].Task})
	var payload struct{ A string }
	w.must(json.Unmarshal(spec.Payload, &payload))
	if want := `{"n": "x\\y"}||Lus"aka`; payload.A != want {
		t.Errorf("the payload says %q, want %q", payload.A, want)
	}
	w.must(set(map[string]string{}, 2))
	w.advance(10 * time.Second)
	if r := w.store.Runs(of)[1]; r.Outcome != "failed" || !strings.Contains(r.Cause, "city") {
		t.Errorf("after the variable went the run is %+v", r)
	}
}

func TestAFlexibleScheduleKeepsItsPlace(t *testing.T) {
	w := worldOn(t, engine.Config{}, storetest.Lone)
	of := w.schedule("s", func(s *models.Schedule) {
		s.Rule.EverySeconds, s.Rule.FlexibleSeconds, s.Rule.Overlap = 3600, 1800, "allow"
	})
	w.advance(time.Hour)
	w.advance(time.Hour)
	var places []time.Duration
	for _, r := range w.store.Runs(of) {
		for _, task := range w.store.Tasks() {
			if task.ID == r.Task {
				places = append(places, max(task.WakeAt, task.ReadyAt).Sub(r.ScheduledFor))
			}
		}
	}
	if len(places) != 2 || places[0] != places[1] || places[0] <= 0 || places[0] > 30*time.Minute {
		t.Errorf("it is placed at %v", places)
	}
}

// A hundred schedules whose runs are large are due at once: no batch makes more rows than one may.
func TestLargeRunsShareBatches(t *testing.T) {
	w := newWorld(t, engine.Config{})
	for i := range 12 {
		w.schedule(fmt.Sprint(i), func(s *models.Schedule) { s.Rule.Partitions, s.Rule.FanOut, s.Rule.EverySeconds = 300, 300, 60 })
	}
	w.now = w.now.Add(time.Minute)
	made, batches := 0, 0
	for w.once([]*engine.Command{{Tick: &engine.Tick{}}}); w.engine.Busy(); w.once(nil) {
		if now := len(w.store.Tasks()); now-made > 1000 {
			t.Fatalf("one batch made %d tasks", now-made)
		} else if made = now; true {
			batches++
		}
	}
	if made = len(w.store.Tasks()); made != 3600 || batches < 4 {
		t.Errorf("%d tasks in %d batches", made, batches)
	}
}

func TestABackfillOfLargeRunsIsShorter(t *testing.T) {
	w := newWorld(t, engine.Config{})
	of := w.schedule("s", func(s *models.Schedule) { s.Rule.Partitions, s.Rule.FanOut = 400, 400 })
	w.turnSchedule(of, false)
	w.advance(31 * time.Second)
	ask := &engine.Backfill{Env: of.Env, Schedule: of.ID, ID: w.id(), From: w.now.Add(-31 * time.Second), To: w.now, Overlap: "allow"}
	if _, err := w.try(&engine.Command{ID: w.id(), Backfill: ask}); models.CodeOf(err) != models.ValidationFailed || !strings.Contains(err.Error(), "2 occurrences") {
		t.Errorf("three runs of 400 tasks: %v", err)
	}
	ask.From = w.now.Add(-20 * time.Second)
	if answer := w.do(&engine.Command{ID: w.id(), Backfill: ask}); answer.Matched != 2 || len(w.store.Tasks()) != 800 {
		t.Errorf("two of them: %d matched, %d tasks", answer.Matched, len(w.store.Tasks()))
	}
}
