package engine_test

import (
	"encoding/json"
	"testing"

	"nightshift/models"
	"nightshift/scheduler/engine"
)

// The edges of a wide task move in slices, a brain that is made anew in between goes on with them, and a small task that
// ends meanwhile waits for none of it.
func TestAWideFanOutMovesInSlices(t *testing.T) {
	w := newWorld(t, engine.Config{Slice: 5})
	worker := w.worker("one")
	after := func(id models.ID) func(*engine.NewTask) {
		return func(n *engine.NewTask) { n.DependsOn = []engine.Dependency{{Task: id}} }
	}
	wide, small := w.task(), w.task()
	tasks := []engine.NewTask{wide, small, w.task(after(small.ID))}
	for range 23 {
		tasks = append(tasks, w.task(after(wide.ID)))
	}
	flow := w.id()
	w.do(&engine.Command{Submit: &engine.Submit{Env: w.env, Tasks: tasks, Workflow: &engine.NewWorkflow{ID: flow, Name: "fan", Input: json.RawMessage(`{}`)}}})
	leases := w.claim(worker, 2)
	ready := func() (n int) {
		for _, task := range tasks[3:] {
			if w.state(task.ID) == models.Ready {
				n++
			}
		}
		return n
	}
	settle := func(l engine.Lease) {
		w.once([]*engine.Command{{Settle: &engine.Settle{Worker: worker.ID, Session: worker.Session, Results: []engine.Result{ok(l)}}}})
	}
	settle(leases[0])
	w.once(nil)
	if n := ready(); n != 5 || !w.engine.Busy() {
		t.Fatalf("%d are ready after a slice", n)
	}
	w.rebuild()
	settle(leases[1])
	w.once(nil)
	if w.want(tasks[2].ID, models.Ready); ready() >= 23 {
		t.Fatal("all moved at once")
	}
	w.turn()
	if n := ready(); n != 23 {
		t.Fatalf("%d are ready in the end", n)
	}
	for left := w.claim(worker, 4); len(left) > 0; left = w.claim(worker, 4) {
		for _, l := range left {
			w.settle(worker, ok(l))
		}
	}
	if got, _ := w.store.Workflow(models.TaskRef{Env: w.env, ID: flow}); got.State != models.WorkflowSucceeded {
		t.Fatalf("the workflow is %s with %v", got.State, got.Counts)
	}
}
