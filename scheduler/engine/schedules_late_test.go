package engine_test

import (
	"strings"
	"testing"
	"time"

	"nightshift/models"
	"nightshift/scheduler/engine"
)

// lates are the reasons that were told for a schedule's late runs.
func (w *world) lates(of models.TaskRef) (reasons []string) {
	for _, e := range w.store.Events() {
		if e.Name == "schedule.late" && e.Schedule == of.ID {
			reasons = append(reasons, e.Reason)
		}
	}
	return reasons
}

func (w *world) latesAre(of models.TaskRef, n int) {
	w.t.Helper()
	if got := w.lates(of); len(got) != n {
		w.t.Fatalf("%d late runs were told, want %d: %v", len(got), n, got)
	}
}

func within(seconds int64, overlap string) func(*models.Schedule) {
	return func(s *models.Schedule) {
		s.Rule.WithinSeconds, s.Rule.Overlap, s.Rule.EverySeconds = seconds, overlap, 60
	}
}

func TestALateRunIsToldOnce(t *testing.T) {
	w := newWorld(t, engine.Config{})
	of := w.schedule("s", within(30, "allow"))
	fine := w.schedule("fine", within(30, "allow"))
	worker := w.worker("one", func(r *models.Worker) { r.LeaseSeconds = 300 })
	w.advance(61 * time.Second)
	leases := w.claim(worker, 2)
	for _, l := range leases {
		if w.store.MadeBy(models.TaskRef{Env: w.env, ID: l.Row.ID}) == fine.ID {
			w.settle(worker, ok(l))
		}
	}
	w.advance(28 * time.Second)
	w.latesAre(of, 0)
	w.crash(models.Unclear, true)
	w.takeOver()
	w.advance(time.Second)
	w.latesAre(of, 1)
	w.takeOver()
	w.advance(20 * time.Second)
	w.latesAre(of, 1)
	w.latesAre(fine, 0)
	r := w.store.Runs(of)[0]
	if r.DueAt != r.ScheduledFor.Add(30*time.Second) || r.LateAt < r.DueAt || !strings.Contains(r.Cause, "30 seconds") || r.Outcome != "dispatched" {
		t.Errorf("the run is %+v", r)
	}
	for _, l := range leases {
		if w.store.MadeBy(models.TaskRef{Env: w.env, ID: l.Row.ID}) == of.ID {
			w.settle(worker, ok(l))
		}
	}
	if r := w.store.Runs(of)[0]; r.State != models.Succeeded || r.LateAt == 0 {
		t.Errorf("after its end the run is %+v", r)
	}
}

func TestWhatNeverAppearsIsLate(t *testing.T) {
	w := newWorld(t, engine.Config{})
	missed := w.schedule("missed", within(300, "skip"), func(s *models.Schedule) { s.Rule.Misfire = "skip" })
	expires := w.schedule("expires", within(300, "skip"), func(s *models.Schedule) { s.Rule.ExpireSeconds = 4 })
	skips := w.schedule("skips", within(3000, "skip"))
	paused := w.schedule("paused", within(3, "skip"))
	w.turnSchedule(paused, false)
	w.now = w.now.Add(90 * time.Second) // nobody looks: 30 seconds late, 5 are allowed
	w.rebuild()
	w.turn(&engine.Command{Tick: &engine.Tick{}})
	w.outcomesAre(missed, "misfired")
	w.latesAre(missed, 1)
	w.outcomesAre(expires, "expired")
	w.latesAre(expires, 1)
	w.advance(40 * time.Second)
	w.outcomesAre(expires, "expired expired/expired")
	w.latesAre(expires, 2)
	w.outcomesAre(skips, "dispatched/ready skipped_overlap")
	w.latesAre(skips, 0)
	w.outcomesAre(paused, "skipped_paused skipped_paused")
	w.latesAre(paused, 0)
	if s := w.stats(); s.ScheduleLate != 3 || s.ScheduleRuns["misfired"] != 1 || s.ScheduleRuns["expired"] != 2 || s.ScheduleRuns["skipped_paused"] != 2 || s.ScheduleRuns["skipped_overlap"] != 1 {
		t.Errorf("counted: %v, %d late", s.ScheduleRuns, s.ScheduleLate)
	}
}

func TestLateAndNewerRuns(t *testing.T) {
	w := newWorld(t, engine.Config{})
	queue := w.schedule("queue", within(90, "queue_one"))
	cancel := w.schedule("cancel", within(90, "cancel_previous"))
	short := w.schedule("short", within(40, "queue_one"))
	w.advance(121 * time.Second)
	w.outcomesAre(queue, "dispatched/ready waits")
	w.outcomesAre(cancel, "superseded/cancelled dispatched/ready")
	w.latesAre(queue, 0)
	w.latesAre(cancel, 1) // it was cancelled for a newer one: it will never end well
	w.advance(60 * time.Second)
	w.outcomesAre(queue, "dispatched/ready superseded waits")
	w.latesAre(queue, 1) // the first; the second has a newer one in its place
	w.latesAre(short, 2) // the first, and the one that waited 40 seconds
	w.do(&engine.Command{Configure: &engine.Configure{DeleteSchedule: &queue}})
	w.do(&engine.Command{Configure: &engine.Configure{DeleteSchedule: &short}})
	w.advance(100 * time.Second)
	w.latesAre(queue, 1)
	w.latesAre(short, 2)
}

func TestAFreezeExcludesOccurrences(t *testing.T) {
	w := newWorld(t, engine.Config{})
	of := w.schedule("s", func(s *models.Schedule) { s.Rule.Overlap = "allow" })
	env := *w.engine.Board().Envs[w.env]
	env.Freezes = []models.Freeze{{Begin: w.now.Add(15 * time.Second), End: w.now.Add(40 * time.Second), Reason: "stocktaking"}}
	w.do(&engine.Command{Configure: &engine.Configure{Environment: &env, Action: "environment.edit"}})
	w.takeOver()
	w.advance(50 * time.Second)
	w.outcomesAre(of, "dispatched/ready excluded excluded dispatched/ready dispatched/ready")
	if r := w.store.Runs(of)[1]; !strings.Contains(r.Cause, "frozen until") || !strings.Contains(r.Cause, "stocktaking") {
		t.Errorf("the run is %+v", r)
	}
}

func TestConfigurationDoesNotUndoAnOperator(t *testing.T) {
	w := newWorld(t, engine.Config{})
	of := w.schedule("s", func(s *models.Schedule) { s.Rule.Overlap = "allow" })
	yes, no := true, false
	put := func(on *bool) {
		w.do(&engine.Command{Configure: &engine.Configure{Enabled: on, Action: "schedule.edit", Schedule: &models.Schedule{
			Env: of.Env, ID: of.ID, Name: "s", Work: models.ScheduleWork{Task: []byte(`{"class":{"type":"work"},"max_attempts":1,"input":{}}`), Given: []byte(`{}`)},
			Rule: models.ScheduleRule{Kind: "interval", EverySeconds: 10, GraceSeconds: 5, Overlap: "allow", Disabled: on != nil && !*on},
		}}})
	}
	last := func(want string) {
		w.t.Helper()
		w.advance(10 * time.Second)
		runs := w.store.Runs(of)
		if r := runs[len(runs)-1]; r.Outcome != want || want == "skipped_paused" && r.Cause == "" {
			w.t.Fatalf("the run is %+v, want %s", r, want)
		}
	}
	w.turnSchedule(of, false)
	put(&yes)
	last("skipped_paused") // an operator's pause stays
	w.takeOver()
	last("skipped_paused")
	w.turnSchedule(of, true)
	last("dispatched")
	put(&no)
	last("skipped_paused")
	w.turnSchedule(of, true) // an operator lets it go on all the same
	last("dispatched")
	w.takeOver()
	last("dispatched")
	put(&no) // said again by name, it holds
	last("skipped_paused")
	put(&yes)
	last("dispatched")
}
