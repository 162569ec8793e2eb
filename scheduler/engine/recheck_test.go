package engine_test

import (
	"strings"
	"testing"

	"nightshift/models"
	"nightshift/scheduler/engine"
)

// A task whose counter says that it waits for more than it does is set right and runs when the others have ended; found by
// two replicas, it is set right once. What has moved since the sweep looked is left to the next.
func TestAWrongCounterIsSetRight(t *testing.T) {
	w := newWorld(t, engine.Config{})
	worker := w.worker("one", func(m *models.Worker) { m.Slots = 50 })
	flow, ids := w.flow(nil, nil, "a", "b:a", "c:a")
	b := models.TaskRef{Env: w.env, ID: ids["b"]}
	w.store.Drift(b, 2)
	recheck := func(waits, more int32) int64 {
		t.Helper()
		return w.do(&engine.Command{Recheck: &engine.Recheck{Drift: []engine.Drifted{{Env: w.env, Task: b.ID, What: "off", Waits: waits, More: more}}}}).Matched
	}
	remaining := func() int32 { row, _ := w.store.Task(b); return row.Remaining }
	if n := recheck(2, -2); n != 0 || remaining() != 3 {
		t.Fatalf("what moved meanwhile: %d set right, it waits for %d", n, remaining())
	}
	if n := recheck(3, -2); n != 1 || remaining() != 1 {
		t.Fatalf("%d set right, it waits for %d", n, remaining())
	}
	if n := recheck(3, -2); n != 0 || remaining() != 1 {
		t.Fatalf("a second time: %d set right, it waits for %d", n, remaining())
	}
	w.settle(worker, ok(w.claim(worker, 1)[0]))
	w.want(ids["b"], models.Ready)
	w.want(ids["c"], models.Ready)

	// One whose last edge fired while the counter was wrong is free at once.
	_, more := w.flow(nil, nil, "d", "e:d")
	e := models.TaskRef{Env: w.env, ID: more["e"]}
	w.store.Drift(e, 1)
	for leases := w.claim(worker, 10); len(leases) > 0; leases = w.claim(worker, 10) {
		for _, l := range leases {
			w.settle(worker, ok(l))
		}
	}
	w.want(e.ID, models.Pending)
	w.rebuild()
	if n := w.do(&engine.Command{Recheck: &engine.Recheck{Drift: []engine.Drifted{{Env: w.env, Task: e.ID, What: "off", Waits: 1, More: -1}}}}).Matched; n != 1 {
		t.Fatalf("%d set right", n)
	}
	w.want(e.ID, models.Ready)
	told := ""
	for _, ev := range w.store.Events() {
		if ev.Name == "counter.drifted" && ev.Task == e.ID {
			told += ev.Reason
		}
	}
	if !strings.Contains(told, "set right") {
		t.Errorf("the event says %q", told)
	}
	w.settle(worker, ok(w.claim(worker, 1)[0]))
	w.want(e.ID, models.Succeeded)
	w.flowIs(flow, models.WorkflowSucceeded)
}
