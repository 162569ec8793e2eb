package engine_test

import (
	"fmt"
	"testing"

	"nightshift/models"
	"nightshift/scheduler/engine"
)

func TestALaneSaysWhyItsFirstTasksWait(t *testing.T) {
	w := newWorld(t, engine.Config{})
	batch := w.engine.Board().LaneNamed(w.env, "batch").Number
	heads := func() []engine.Head {
		return w.do(&engine.Command{Look: &engine.Look{Heads: batch}}).Looked.Heads
	}
	if got := heads(); len(got) != 0 {
		t.Fatalf("nothing waits, and it says %+v", got)
	}
	w.worker("one", func(m *models.Worker) { m.Slots, m.TaskTypes = 1, []string{"work"} })
	w.submit(w.task(func(n *engine.NewTask) { n.Class.Type, n.Lane = "other", "io" }))
	late := w.submit(w.task(func(n *engine.NewTask) { n.Priority = 10 }), w.task())[1]
	first := w.submit(w.task(func(n *engine.NewTask) { n.Class.Type, n.Priority = "train", 90 }))[0]
	got := heads()
	if len(got) != 2 || got[0].Task.ID != first || got[0].Type != "train" || got[0].Ready != 1 || got[1].Task.ID != late || got[1].Ready != 2 {
		t.Fatalf("heads %+v", got)
	}
	if a, b := got[0].Why.BlockedBy, got[1].Why.BlockedBy; len(a) != 1 || a[0].Reason != "no_capable_worker" || len(b) != 1 || b[0].Reason != "workers_busy" {
		t.Errorf("because of %+v and %+v", a, b)
	}
	for n := range 30 {
		w.submit(w.task(func(n2 *engine.NewTask) { n2.Class.Type = fmt.Sprintf("t%d", n) }))
	}
	if got := heads(); len(got) != 20 || got[0].Task.ID != first {
		t.Errorf("%d heads", len(got))
	}
}
