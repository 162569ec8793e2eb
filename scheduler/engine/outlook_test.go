package engine_test

import (
	"encoding/json"
	"math"
	"testing"
	"time"

	"nightshift/models"
	"nightshift/scheduler/engine"
	"nightshift/scheduler/forecast"
)

// later lets time pass at once, with a tick at its end.
func (w *world) later(d time.Duration) {
	w.t.Helper()
	w.now = w.now.Add(d)
	w.turn(&engine.Command{Tick: &engine.Tick{}})
}

// workOf is a schedule's task of a type, with what its caller expects it to take.
func (w *world) workOf(name string, ms int64) models.ScheduleWork {
	w.t.Helper()
	task := w.task(func(t *engine.NewTask) { t.Class.Type, t.EstimateMS, t.MaxAttempts = name, ms, 1 })
	text, err := json.Marshal(task)
	w.must(err)
	return models.ScheduleWork{Task: text, Given: json.RawMessage(`{}`)}
}

func (w *world) peak(from, until time.Duration) float64 {
	w.t.Helper()
	_, p90 := w.engine.Foreseen().Peak("cpu", forecast.Everything, w.now.Add(from), w.now.Add(until))
	return p90
}

func TestTheDayAheadIsForeseen(t *testing.T) {
	w := newWorld(t, engine.Config{})
	w.worker("one")
	if w.engine.Foreseen() != nil {
		t.Fatal("before the first look nothing is foreseen")
	}
	hourly := func(s *models.Schedule) {
		s.Rule.EverySeconds, s.Rule.Overlap, s.Work = 3600, "allow", w.workOf("hourly", 300_000)
	}
	of := w.schedule("one", hourly)
	w.schedule("two", hourly)
	w.schedule("off", hourly, func(s *models.Schedule) { s.Rule.Disabled = true })
	w.later(6 * time.Second)
	if got := w.peak(0, 24*time.Hour); got != 2 {
		t.Errorf("at the peak of the day %.2f run, not 2", got)
	}
	if got := w.peak(10*time.Minute, 50*time.Minute); got != 0 {
		t.Errorf("between their moments %.2f run", got)
	}
	w.turnSchedule(of, false)
	w.later(6 * time.Second)
	if got := w.peak(0, 24*time.Hour); got != 1 {
		t.Errorf("with one of them paused %.2f run at the peak", got)
	}
	w.do(&engine.Command{Configure: &engine.Configure{DeleteSchedule: &of, Action: "schedule.delete"}})
	w.takeOver()
	w.later(time.Second)
	if got := w.peak(0, 24*time.Hour); got != 1 {
		t.Errorf("the next brain foresees %.2f", got)
	}
}

func TestWhatRunsTakeIsLearnedAndKept(t *testing.T) {
	w := newWorld(t, engine.Config{})
	worker := w.worker("one")
	of := w.schedule("s", func(s *models.Schedule) { s.Rule.EverySeconds = 3600 })
	if state, _ := w.store.ScheduleState(of); state.Profile.TaskMS != [3]int64{1000, 1000, 1000} || state.Profile.Tasks[0] != 1000 || state.Profile.Runs != 0 || state.Profile.Lane == 0 {
		t.Errorf("of a new schedule it is expected: %+v", state.Profile)
	}
	w.later(time.Hour)
	lease := w.claim(worker, 1)[0]
	w.later(20 * time.Second)
	w.settle(worker, ok(lease))
	state, _ := w.store.ScheduleState(of)
	if state.Profile.TaskMS != [3]int64{20_000, 20_000, 20_000} || state.Profile.Runs != 1 || state.Profile.Class != lease.Row.Class {
		t.Errorf("after a run of 20 s: %+v", state.Profile)
	}
	w.later(11 * time.Second) // estimates are saved every ten
	w.takeOver()
	w.later(time.Second)
	if got := w.peak(0, 2*time.Hour); got != 1 {
		t.Errorf("the next brain foresees %.2f", got)
	}
	// A new schedule of the same type is expected to be like it.
	other := w.schedule("t", func(s *models.Schedule) { s.Rule.EverySeconds = 3600 })
	if like, _ := w.store.ScheduleState(other); like.Profile.TaskMS[0] < 19_000 || like.Profile.TaskMS[0] > 26_000 {
		t.Errorf("a new schedule of that type is expected to take %v", like.Profile.TaskMS)
	}
	// An edit that leaves the work as it is forgets nothing; one of the work does.
	row := models.Schedule{Env: of.Env, ID: of.ID, Name: "s", Work: w.workOf("work", 0), Rule: models.ScheduleRule{Kind: "interval", EverySeconds: 7200}}
	w.do(&engine.Command{Configure: &engine.Configure{Schedule: &row, Action: "schedule.edit"}})
	if state, _ := w.store.ScheduleState(of); state.Profile.Runs != 1 {
		t.Errorf("after an edit of its moments: %+v", state.Profile)
	}
	row.Work = w.workOf("another", 5_000)
	w.do(&engine.Command{Configure: &engine.Configure{Schedule: &row, Action: "schedule.edit"}})
	if state, _ := w.store.ScheduleState(of); state.Profile.Runs != 0 || state.Profile.TaskMS[0] != 5000 {
		t.Errorf("after an edit of its work: %+v", state.Profile)
	}
}

// A flexible schedule goes where the pool is quiet, each occurrence once, whichever brain decides.
func TestAFlexibleScheduleGoesWhereItIsQuiet(t *testing.T) {
	w := newWorld(t, engine.Config{})
	w.worker("one")
	base := w.now // both count from here
	for range 2 {
		w.schedule(w.id().Text("x"), func(s *models.Schedule) { // at work for the first forty minutes of each hour
			s.Rule.EverySeconds, s.Rule.Overlap, s.Work = 3600, "allow", w.workOf("long", 40*60_000)
		})
	}
	of := w.schedule("flexible", func(s *models.Schedule) {
		s.Rule.EverySeconds, s.Rule.FlexibleSeconds, s.Rule.Overlap, s.Work = 3600, 3000, "allow", w.workOf("short", 5*60_000)
	})
	w.later(6 * time.Second)
	for hour := 1; hour <= 3; hour++ {
		w.later(base.Add(time.Duration(hour) * time.Hour).Sub(w.now))
		runs := w.store.Runs(of)
		if len(runs) != hour {
			t.Fatalf("%d runs in %d hours", len(runs), hour)
		}
		r := runs[hour-1]
		after := w.row(r.Task).WakeAt.Sub(r.ScheduledFor)
		if r.ScheduledFor != base.Add(time.Duration(hour)*time.Hour) || after < 40*time.Minute || after > 50*time.Minute {
			t.Errorf("run %d is scheduled for %v after the beginning and starts %v later", hour, r.ScheduledFor.Sub(base), after)
		}
		if hour == 2 {
			w.takeOver() // right after its work was made
		}
		w.later(time.Minute)
	}
}

// What runs against what was foreseen corrects the forecast, slowly, and is kept.
func TestWhatWasSeenIsRemembered(t *testing.T) {
	w := newWorld(t, engine.Config{})
	worker := w.worker("one")
	of := w.schedule("s", func(s *models.Schedule) {
		s.Rule.EverySeconds, s.Rule.Overlap, s.Work = 3600, "allow", w.workOf("long", 30*60_000)
	})
	began := w.now
	w.later(6 * time.Second)
	w.later(began.Add(time.Hour).Sub(w.now))
	w.trigger(of) // three where one was foreseen
	w.trigger(of)
	w.claim(worker, 3)
	corrected := 0
	w.saw = func(p *models.Plan) { corrected += len(p.Corrections) }
	for range 44 {
		w.now = w.now.Add(14 * time.Second)
		w.do(&engine.Command{Heartbeat: &engine.Heartbeat{Worker: worker.ID, Session: worker.Session, All: true, Leases: w.beats()}})
		w.turn(&engine.Command{Tick: &engine.Tick{}})
	}
	if corrected == 0 {
		t.Fatal("nothing was corrected in ten minutes")
	}
	same := w.now - w.now%models.Instant(5*time.Minute/time.Microsecond) - models.Instant(5*time.Minute/time.Microsecond) + models.Instant(24*time.Hour/time.Microsecond)
	look := func() float64 {
		_, p90 := w.engine.Foreseen().At(forecast.Of{Pool: "cpu", Kind: models.Batch}, same)
		return p90
	}
	was := look()
	if was < 1.05 || was > 1.2 || math.IsNaN(was) {
		t.Errorf("tomorrow %.3f are foreseen at this time, somewhat more than 1", was)
	}
	w.takeOver()
	w.later(time.Second)
	if is := look(); math.Abs(is-was) > 0.01 {
		t.Errorf("the next brain foresees %.3f, not %.3f", is, was)
	}
}

// Work goes to the pool with most slots for it, as soon as there is one.
func TestWorkIsForeseenInThePoolItGoesTo(t *testing.T) {
	w := newWorld(t, engine.Config{})
	of := w.schedule("s", func(s *models.Schedule) {
		s.Rule.EverySeconds, s.Rule.Overlap, s.Work = 3600, "allow", w.workOf("long", 300_000)
	})
	in := func(pool string) float64 {
		_, p90 := w.engine.Foreseen().Peak(pool, forecast.Everything, w.now, w.now.Add(2*time.Hour))
		return p90
	}
	w.later(6 * time.Second)
	if in("cpu") != 1 {
		t.Error("without any worker it goes to the pool that such work goes to")
	}
	w.worker("one", func(m *models.Worker) { m.Pool = "night" })
	w.worker("two", func(m *models.Worker) { m.Pool, m.Slots = "day", 3 })
	w.later(6 * time.Second)
	if in("night") != 1 || in("day") != 0 || in("cpu") != 0 {
		t.Errorf("%v in the pool of four slots, %v in that of three", in("night"), in("day"))
	}
	ahead := w.do(&engine.Command{Look: &engine.Look{Ahead: &engine.LookAhead{Env: of.Env, Works: [][2]int32{{w.engine.Board().LaneNamed(of.Env, "batch").Number, 0}}}}}).Looked.Ahead
	if len(ahead.Pools) != 1 || ahead.Pools[0] != "night" || len(ahead.Has) != 2 || ahead.Has[1].Pool != "night" || ahead.Has[1].All != 4 || ahead.Has[1].For[models.Batch] != 4 {
		t.Errorf("a look ahead says %+v", ahead)
	}
	if _, err := w.try(&engine.Command{Look: &engine.Look{Ahead: &engine.LookAhead{Env: 99}}}); models.CodeOf(err) != models.NotFound {
		t.Errorf("of an environment that is not there: %v", err)
	}
}
