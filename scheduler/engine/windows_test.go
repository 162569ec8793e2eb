package engine_test

import (
	"strings"
	"testing"
	"time"

	"nightshift/models"
	"nightshift/scheduler/engine"
)

// A lane with windows starts nothing while it is closed, says until when, and opens by time alone: for a worker that waits,
// and over a rebuild.
func TestALaneIsOpenInItsWindows(t *testing.T) {
	w := newWorld(t, engine.Config{})
	box := w.worker("box")
	w.now = w.now.Add(30 * time.Second) // half past the minute
	opens := w.now.Time().Truncate(time.Minute).Add(time.Minute)
	edit := func(windows ...models.Window) {
		t.Helper()
		lane := w.engine.Board().LaneNamed(w.env, "batch").Lane
		lane.OpenWindows = windows
		w.do(&engine.Command{Configure: &engine.Configure{Lane: &lane, Action: "lane.edit"}})
	}
	edit(models.Window{Cron: "* * * * *", DurationSeconds: 20})
	ids := w.submit(w.task(), w.task(), w.task())
	if got := w.claim(box, 1); len(got) != 0 {
		t.Fatal("a closed lane started a task")
	}
	explain := func() *engine.Explained {
		t.Helper()
		return w.do(&engine.Command{Look: &engine.Look{Explain: &models.TaskRef{Env: w.env, ID: ids[0]}}}).Looked.Explain
	}
	if at := explain().EstimatedStart; at != models.InstantOf(opens) {
		t.Fatalf("a lane that opens at %s is expected to start something at %s", opens, at.Time())
	}
	lane := w.engine.Board().LaneNamed(w.env, "batch").Lane
	for _, paused := range []bool{true, false} {
		lane.Paused = paused
		w.do(&engine.Command{Configure: &engine.Configure{Lane: &lane, Action: "lane.edit"}})
		if at := explain().EstimatedStart; (at == 0) != paused {
			t.Fatalf("a lane paused: %v is expected to start something at %s", paused, at.Time())
		}
	}
	why := explain().BlockedBy
	if len(why) != 1 || why[0].Reason != "lane_closed" || !strings.Contains(why[0].Detail, opens.Format("2006-01-02T15:04:05Z")) {
		t.Fatalf("blocked by %+v", why)
	}
	w.rebuild()

	claim := &engine.Command{Claim: &engine.Claim{Worker: box.ID, Session: box.Session, Most: 1, Until: w.now.Add(2 * time.Hour)}}
	if a, _ := w.try(claim); a != nil {
		t.Fatalf("a closed lane answered %+v", a)
	}
	if wake := w.engine.NextWake(); wake > models.InstantOf(opens) {
		t.Fatalf("the engine sleeps until %s", wake.Time())
	}
	w.advance(29 * time.Second)
	if a := w.late[claim].Answer; a != nil {
		t.Fatalf("before it opens a lane answers %+v", a)
	}
	w.advance(time.Second)
	got := w.late[claim].Answer
	if got == nil || len(got.Claimed.Leases) != 1 {
		t.Fatalf("at %s the lane opened, and the waiting worker got %+v", opens, got)
	}
	w.settle(box, ok(got.Claimed.Leases[0]))
	w.rebuild()
	if got := w.claim(box, 1); len(got) != 1 {
		t.Fatal("an open lane starts nothing after a rebuild")
	}

	w.advance(20 * time.Second)
	if got := w.claim(box, 1); len(got) != 0 {
		t.Fatal("a lane starts tasks after its window")
	}
	edit()
	if got := w.claim(box, 1); len(got) != 1 {
		t.Fatal("a lane without windows starts nothing")
	}
}

// What a rebuilt board has yet to read, its timers, is no reason to sleep: the next batch is due at once, and after it the hour
// at which a lane opens wakes the engine as before.
func TestARebuiltEngineIsDueAtOnce(t *testing.T) {
	w := newWorld(t, engine.Config{})
	w.rebuild()
	if wake := w.engine.NextWake(); wake == 0 || wake > w.now {
		t.Errorf("it wakes at %d, and it is %d", wake, w.now)
	}
	w.turn(&engine.Command{Tick: &engine.Tick{}})
	if wake := w.engine.NextWake(); wake <= w.now {
		t.Errorf("with nothing to do it wakes at %d, and it is %d", wake, w.now)
	}
}
