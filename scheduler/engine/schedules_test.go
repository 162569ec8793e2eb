package engine_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"nightshift/models"
	"nightshift/scheduler/engine"
)

// schedule makes one of kind interval, every ten seconds, unless change says otherwise.
func (w *world) schedule(name string, change ...func(*models.Schedule)) models.TaskRef {
	w.t.Helper()
	task := w.task(func(t *engine.NewTask) {
		t.MaxAttempts, t.Payload = 1, json.RawMessage(`{"for":"{{scheduled_for}}","run":"{{ run_id }}","other":"{{x}}"}`)
	})
	text, err := json.Marshal(task)
	w.must(err)
	row := models.Schedule{
		Env: w.env, ID: w.id(), Name: name, Work: models.ScheduleWork{Task: text, Given: json.RawMessage(`{}`)},
		Rule: models.ScheduleRule{Kind: "interval", EverySeconds: 10, GraceSeconds: 5, CatchUp: 100},
	}
	for _, c := range change {
		c(&row)
	}
	w.do(&engine.Command{Configure: &engine.Configure{Schedule: &row, New: true, Action: "schedule.create"}})
	return models.TaskRef{Env: w.env, ID: row.ID}
}

func (w *world) trigger(of models.TaskRef) models.Run {
	w.t.Helper()
	return *w.do(&engine.Command{ID: w.id(), Trigger: &engine.Trigger{Env: of.Env, Schedule: of.ID, Run: w.id()}}).Run
}

func (w *world) turnSchedule(of models.TaskRef, on bool) {
	w.t.Helper()
	w.do(&engine.Command{Actor: models.Actor{ID: "somebody"}, Configure: &engine.Configure{SwitchSchedule: &engine.SwitchSchedule{Env: of.Env, ID: of.ID, Enabled: on}}})
}

// outcomes are what became of a schedule's runs, a word each, with the state of the work behind a slash.
func (w *world) outcomes(of models.TaskRef) string {
	var words []string
	for _, r := range w.store.Runs(of) {
		word := r.Outcome
		if word == "" {
			word = "waits"
		}
		if !r.Task.IsZero() {
			word += "/" + w.state(r.Task).String()
		}
		words = append(words, word)
	}
	return strings.Join(words, " ")
}

func (w *world) outcomesAre(of models.TaskRef, want string) {
	w.t.Helper()
	if got := w.outcomes(of); got != want {
		w.t.Fatalf("the runs are\n%s\nwant\n%s", got, want)
	}
}

func TestAnOccurrenceBecomesWorkOnItsMoment(t *testing.T) {
	w := newWorld(t, engine.Config{})
	of := w.schedule("every ten")
	began := w.now
	w.advance(9 * time.Second)
	w.outcomesAre(of, "")
	w.advance(time.Second)
	w.outcomesAre(of, "dispatched/ready")
	run := w.store.Runs(of)[0]
	if run.ScheduledFor != began.Add(10*time.Second) || run.Origin != "timer" || run.FiredAt != w.now || run.LateMS != 0 {
		t.Errorf("the run is %+v", run)
	}
	spec, _ := w.store.Spec(models.TaskRef{Env: w.env, ID: run.Task})
	id := run.ID.Text(models.RunPrefix)
	if want := `{"for":"` + run.ScheduledFor.Time().Format(time.RFC3339Nano) + `","run":"` + id + `","other":"{{x}}"}`; string(spec.Payload) != want {
		t.Errorf("the payload is %s, want %s", spec.Payload, want)
	}
	if !strings.Contains(string(spec.Input), `"run_id":"`+id+`"`) || !strings.Contains(string(spec.Input), `"schedule_id":"`+of.ID.Text(models.SchedulePrefix)+`"`) {
		t.Errorf("the input is %s", spec.Input)
	}
	worker := w.worker("one")
	w.settle(worker, ok(w.claim(worker, 1)[0]))
	if r := w.store.Runs(of)[0]; r.State != models.Succeeded || r.FinishedAt != w.now {
		t.Errorf("after its success the run is %+v", r)
	}
	if state, _ := w.store.ScheduleState(of); state.LastSuccess != w.now || state.LastRun != run.ID || state.LastOutcome != "dispatched" {
		t.Errorf("the state is %+v", state)
	}
}

func TestOverlapIsJudgedOccurrenceByOccurrence(t *testing.T) {
	for policy, want := range map[string][3]string{ // after three occurrences, after the first one's end, after a fourth
		"": {
			"dispatched/ready skipped_overlap skipped_overlap", "dispatched/succeeded skipped_overlap skipped_overlap",
			"dispatched/succeeded skipped_overlap skipped_overlap dispatched/ready",
		},
		"allow": {
			"dispatched/ready dispatched/ready dispatched/ready", "dispatched/succeeded dispatched/ready dispatched/ready",
			"dispatched/succeeded dispatched/ready dispatched/ready dispatched/ready",
		},
		"queue_one": {
			"dispatched/ready superseded waits", "dispatched/succeeded superseded dispatched/ready",
			"dispatched/succeeded superseded dispatched/ready waits",
		},
		"cancel_previous": {
			"superseded/cancelled superseded/cancelled dispatched/ready", "superseded/cancelled superseded/cancelled dispatched/succeeded",
			"superseded/cancelled superseded/cancelled dispatched/succeeded dispatched/ready",
		},
	} {
		t.Run(policy, func(t *testing.T) {
			w := newWorld(t, engine.Config{})
			of := w.schedule("s", func(s *models.Schedule) { s.Rule.Overlap = policy })
			w.advance(30 * time.Second)
			w.outcomesAre(of, want[0])
			worker := w.worker("one")
			w.settle(worker, ok(w.claim(worker, 1)[0]))
			w.outcomesAre(of, want[1])
			w.advance(10 * time.Second)
			w.outcomesAre(of, want[2])
		})
	}
}

func TestCancelPreviousStopsWhatRuns(t *testing.T) {
	w := newWorld(t, engine.Config{})
	of := w.schedule("s", func(s *models.Schedule) { s.Rule.Overlap = "cancel_previous" })
	w.advance(10 * time.Second)
	worker := w.worker("one", func(r *models.Worker) { r.LeaseSeconds = 300 })
	lease := w.claim(worker, 1)[0]
	w.advance(10 * time.Second)
	w.outcomesAre(of, "superseded/cancel_requested dispatched/ready")
	w.settle(worker, failed(lease, "internal"))
	w.outcomesAre(of, "superseded/cancelled dispatched/ready")
}

func TestMissedOccurrencesFollowThePolicy(t *testing.T) {
	for _, c := range []struct {
		policy  string
		limit   int64
		expires int64
		want    string
	}{
		{"skip", 0, 0, "misfired misfired misfired dispatched/ready"},
		{"run_once", 0, 0, "misfired misfired dispatched/ready dispatched/ready"},
		{"catch_up", 2, 0, "misfired dispatched/ready dispatched/ready dispatched/ready"},
		{"catch_up", 9, 0, "dispatched/ready dispatched/ready dispatched/ready dispatched/ready"},
		{"catch_up", 9, 15, "expired expired dispatched/ready dispatched/ready"},
	} {
		t.Run(fmt.Sprint(c.policy, c.limit, c.expires), func(t *testing.T) {
			w := newWorld(t, engine.Config{Slice: 2})
			of := w.schedule("s", func(s *models.Schedule) {
				s.Rule.Overlap, s.Rule.Misfire, s.Rule.CatchUp, s.Rule.ExpireSeconds = "allow", c.policy, c.limit, c.expires
			})
			w.now = w.now.Add(42 * time.Second)
			w.rebuild()
			w.turn(&engine.Command{Tick: &engine.Tick{}})
			w.outcomesAre(of, c.want)
		})
	}
}

func TestAPausedScheduleLeavesRowsAndMakesUpNothing(t *testing.T) {
	w := newWorld(t, engine.Config{})
	of := w.schedule("s", func(s *models.Schedule) { s.Rule.Overlap = "allow" })
	w.turnSchedule(of, false)
	w.advance(15 * time.Second)
	w.outcomesAre(of, "skipped_paused")
	if r := w.store.Runs(of)[0]; r.Cause != "paused by somebody" {
		t.Errorf("the cause is %q", r.Cause)
	}
	if run := w.trigger(of); run.Outcome != "dispatched" || run.Origin != "manual:"+run.ID.Text(models.RunPrefix) || run.Task.IsZero() {
		t.Errorf("triggered: %+v", run)
	}
	w.advance(3 * time.Second)
	w.turnSchedule(of, true)
	w.advance(time.Second)
	w.outcomesAre(of, "skipped_paused dispatched/ready")
	w.advance(time.Second)
	w.outcomesAre(of, "skipped_paused dispatched/ready dispatched/ready")
}

func TestATriggerMeetsTheOverlapPolicy(t *testing.T) {
	w := newWorld(t, engine.Config{})
	of := w.schedule("s")
	w.trigger(of)
	if second := w.trigger(of); second.Outcome != "skipped_overlap" || second.Cause == "" || !second.Task.IsZero() {
		t.Errorf("the second trigger: %+v", second)
	}
	w.outcomesAre(of, "dispatched/ready skipped_overlap")
}

func TestFailuresInARowPauseTheSchedule(t *testing.T) {
	w := newWorld(t, engine.Config{})
	of := w.schedule("s", func(s *models.Schedule) { s.Rule.MostFailures = 2 })
	worker := w.worker("one")
	for range 2 {
		w.advance(10 * time.Second)
		w.settle(worker, failed(w.claim(worker, 1)[0], "invalid_input"))
	}
	if state, _ := w.store.ScheduleState(of); state.Enabled || state.PausedBy != "failures" || state.Failures != 2 {
		t.Fatalf("the state is %+v", state)
	}
	w.advance(10 * time.Second)
	w.outcomesAre(of, "dispatched/dead_letter dispatched/dead_letter skipped_paused")
	w.turnSchedule(of, true)
	if state, _ := w.store.ScheduleState(of); !state.Enabled || state.PausedBy != "" || state.Failures != 0 {
		t.Fatalf("after resuming the state is %+v", state)
	}
	dead := w.store.Runs(of)[0].Task
	w.do(&engine.Command{ID: w.id(), Redrive: &engine.Redrive{Env: w.env, Task: dead}})
	w.advance(10 * time.Second)
	w.outcomesAre(of, "dispatched/ready dispatched/dead_letter skipped_paused skipped_overlap")
}

func TestNowOrNotAtAll(t *testing.T) {
	w := newWorld(t, engine.Config{})
	of := w.schedule("s", func(s *models.Schedule) { s.Rule.ExpireSeconds = 4 })
	w.advance(14 * time.Second)
	w.outcomesAre(of, "expired/expired")
	if r := w.store.Runs(of)[0]; r.Cause == "" || r.FinishedAt == 0 {
		t.Errorf("the run is %+v", r)
	}
}

func TestAnIntervalMayCountFromTheEndOfTheRunBefore(t *testing.T) {
	w := newWorld(t, engine.Config{})
	of := w.schedule("s", func(s *models.Schedule) { s.Rule.FromEnd = true })
	w.advance(25 * time.Second)
	w.outcomesAre(of, "dispatched/ready")
	worker := w.worker("one")
	w.settle(worker, ok(w.claim(worker, 1)[0]))
	w.advance(9 * time.Second)
	w.outcomesAre(of, "dispatched/succeeded")
	w.advance(time.Second)
	w.outcomesAre(of, "dispatched/succeeded dispatched/ready")
}

func TestNamesAreOnesOwnAndVersionsRise(t *testing.T) {
	w := newWorld(t, engine.Config{})
	of := w.schedule("s")
	row := models.Schedule{Env: w.env, ID: w.id(), Name: "s", Work: models.ScheduleWork{Task: json.RawMessage(`{"class":{"type":"work"}}`)}, Rule: models.ScheduleRule{Kind: "interval", EverySeconds: 60}}
	put := func(c engine.Configure) error {
		_, err := w.try(&engine.Command{Configure: &c})
		return err
	}
	if code := models.CodeOf(put(engine.Configure{Schedule: &row, New: true})); code != models.StateConflict {
		t.Errorf("a taken name: %s", code)
	}
	row.ID = of.ID
	w.must(put(engine.Configure{Schedule: &row, Version: 1}))
	if code := models.CodeOf(put(engine.Configure{Schedule: &row, Version: 1})); code != models.Stale {
		t.Errorf("an old version: %s", code)
	}
	w.advance(59 * time.Second)
	w.outcomesAre(of, "")
	w.must(put(engine.Configure{DeleteSchedule: &of, Version: 2}))
	w.advance(5 * time.Second)
	w.outcomesAre(of, "")
	if code := models.CodeOf(put(engine.Configure{DeleteSchedule: &of})); code != models.NotFound {
		t.Errorf("deleted twice: %s", code)
	}
	row.Work.Task = json.RawMessage(`{"class":{"type":"work"},"lane":"nowhere"}`)
	if err := put(engine.Configure{Schedule: &row, New: true}); models.CodeOf(err) != models.ValidationFailed {
		t.Errorf("an unknown lane: %v", err)
	}
}

// Brains that die before a commit, after it, or between two batches neither double an occurrence nor lose one.
func TestATakeoverNeitherDoublesNorLosesAnOccurrence(t *testing.T) {
	for seed := range uint64(6) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 5))
			w := worldOn(t, engine.Config{Slice: 3}, bothOn(seed == 0))
			began := w.now
			var all []models.TaskRef
			for i := range 12 {
				all = append(all, w.schedule(fmt.Sprint(i), func(s *models.Schedule) {
					s.Rule.EverySeconds, s.Rule.Misfire, s.Rule.GraceSeconds = int64(3+i), "catch_up", 2
					s.Rule.Overlap = []string{"", "allow", "queue_one", "cancel_previous"}[i%4]
				}))
			}
			for range 150 {
				w.now = w.now.Add(time.Duration(rng.IntN(1500)) * time.Millisecond)
				switch rng.IntN(6) {
				case 0:
					w.crash(models.Rollback, false)
				case 1:
					w.crash(models.Unclear, true)
				case 2:
					brain, err := w.store.Brain(w.ctx)
					w.must(err)
					w.epoch, err = w.store.TakeOver(w.ctx, brain, "there")
					w.must(err)
					w.engine = engine.New(engine.Config{Slice: 3, Seed: [32]byte{byte(rng.Uint32())}})
					w.rebuild()
				}
				w.turn(&engine.Command{Tick: &engine.Tick{}})
			}
			for i, of := range all {
				every := time.Duration(3+i) * time.Second
				runs := w.store.Runs(of)
				at := map[models.Instant]int{}
				for _, r := range runs {
					at[r.ScheduledFor]++
					if r.Outcome == "dispatched" && r.Task.IsZero() {
						t.Fatalf("seed %d: a run without its work: %+v", seed, r)
					}
				}
				want := 0
				for due := began.Add(every); due <= w.now; due = due.Add(every) {
					want++
					if at[due] != 1 {
						t.Fatalf("seed %d: the occurrence of schedule %d after %v has %d rows", seed, i, due.Sub(began), at[due])
					}
				}
				if len(runs) != want {
					t.Fatalf("seed %d: schedule %d has %d rows, want %d", seed, i, len(runs), want)
				}
			}
			tasks := 0
			for _, of := range all {
				for _, r := range w.store.Runs(of) {
					if !r.Task.IsZero() {
						tasks++
					}
				}
			}
			if got := len(w.store.Tasks()); got != tasks {
				t.Fatalf("seed %d: %d tasks for %d runs with work", seed, got, tasks)
			}
		})
	}
}

// crash runs a batch whose commit fails, and begins anew from the rows.
func (w *world) crash(code models.Code, happened bool, more ...*engine.Command) {
	w.t.Helper()
	cmds := append([]*engine.Command{{Tick: &engine.Tick{}}}, more...)
	facts, err := w.store.Facts(w.ctx, w.engine.Need(cmds))
	w.must(err)
	plan, _ := w.engine.Decide(w.batch+1, w.epoch, facts, cmds)
	if !plan.Empty() {
		w.store.FailNext(code, happened)
		if _, err := w.store.Apply(w.ctx, plan); err == nil {
			w.t.Fatal("the commit did not fail")
		}
	}
	w.rebuild()
}

func TestManyDueAtOnceAreTakenInBoundedBatches(t *testing.T) {
	w := newWorld(t, engine.Config{})
	const n = 3_000
	var cmds []*engine.Command
	for i := range n {
		row := models.Schedule{Env: w.env, ID: w.id(), Name: fmt.Sprint(i), Work: models.ScheduleWork{Task: json.RawMessage(`{"class":{"type":"work"},"max_attempts":1,"input":{}}`)}, Rule: models.ScheduleRule{Kind: "interval", EverySeconds: 60, GraceSeconds: 60}}
		cmds = append(cmds, &engine.Command{Configure: &engine.Configure{Schedule: &row, New: true}})
	}
	w.once(cmds)
	w.now = w.now.Add(time.Minute)
	batches, made := 0, 0
	for w.once([]*engine.Command{{Tick: &engine.Tick{}}}); w.engine.Busy(); w.once(nil) {
		now := len(w.store.Tasks())
		if now-made > 200 {
			t.Fatalf("one batch made %d tasks", now-made)
		}
		made = now
		batches++
	}
	if made = len(w.store.Tasks()); made != n {
		t.Errorf("%d tasks in %d batches, want %d", made, batches, n)
	}
}

func TestABackfillMakesUpARange(t *testing.T) {
	for overlap, want := range map[string]string{
		"allow":           "dispatched/ready dispatched/ready dispatched/ready",
		"skip":            "dispatched/ready skipped_overlap skipped_overlap",
		"cancel_previous": "superseded/cancelled superseded/cancelled dispatched/ready",
	} {
		t.Run(overlap, func(t *testing.T) {
			w := newWorld(t, engine.Config{})
			of := w.schedule("s", func(s *models.Schedule) { s.Rule.ExpireSeconds, s.Rule.JitterSeconds = 5, 60 })
			began := w.now
			w.turnSchedule(of, false)
			w.advance(35 * time.Second)
			before, _ := w.store.ScheduleState(of)
			id := w.id()
			answer := w.do(&engine.Command{ID: w.id(), Backfill: &engine.Backfill{Env: of.Env, Schedule: of.ID, ID: id, From: began.Add(10 * time.Second), To: began.Add(30 * time.Second), Overlap: overlap}})
			if answer.Matched != 3 {
				t.Errorf("%s: %d matched", overlap, answer.Matched)
			}
			w.outcomesAre(of, "skipped_paused skipped_paused skipped_paused "+want)
			for i, r := range w.store.Runs(of)[3:] {
				if r.ScheduledFor != began.Add(time.Duration(i+1)*10*time.Second) || r.Origin != "backfill:"+id.Text(models.BulkPrefix) {
					t.Errorf("%s: run %d is %+v", overlap, i, r)
				}
			}
			if after, _ := w.store.ScheduleState(of); after.Mark != before.Mark || after.Enabled {
				t.Errorf("%s: the state was %+v and is %+v", overlap, before, after)
			}
		})
	}
	w := newWorld(t, engine.Config{})
	of := w.schedule("s", func(s *models.Schedule) { s.Rule.EverySeconds = 1 })
	w.now = w.now.Add(2000 * time.Second)
	ask := &engine.Backfill{Env: of.Env, Schedule: of.ID, ID: w.id(), From: w.now.Add(-1500 * time.Second), To: w.now, Overlap: "allow"}
	if _, err := w.try(&engine.Command{ID: w.id(), Backfill: ask}); models.CodeOf(err) != models.ValidationFailed {
		t.Errorf("too many: %v", err)
	}
	ask.To = w.now.Add(time.Second)
	if _, err := w.try(&engine.Command{ID: w.id(), Backfill: ask}); models.CodeOf(err) != models.ValidationFailed {
		t.Errorf("the future: %v", err)
	}
}
