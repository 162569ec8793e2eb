package engine_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"nightshift/models"
	"nightshift/scheduler/engine"
)

func suspended(l engine.Lease) engine.Result {
	return engine.Result{Token: l.Row.Token, Task: models.TaskRef{Env: l.Row.Env, ID: l.Row.ID}, Outcome: models.AttemptSuspended}
}

func (w *world) children(l engine.Lease, keys ...string) *engine.Command {
	s := &engine.Spawn{Env: l.Row.Env, Task: l.Row.ID, Token: l.Row.Token}
	for _, key := range keys {
		s.Tasks = append(s.Tasks, w.task(func(n *engine.NewTask) { n.Key = key }))
	}
	return &engine.Command{ID: w.id(), Spawn: s}
}

func (w *world) spawn(l engine.Lease, keys ...string) []models.ID {
	w.t.Helper()
	var ids []models.ID
	for _, t := range w.do(w.children(l, keys...)).Submitted.Tasks {
		ids = append(ids, t.Row.ID)
	}
	return ids
}

func TestASuspendedParentComesBackWhenItsChildrenHaveEnded(t *testing.T) {
	w := newWorld(t, engine.Config{})
	worker := w.worker("one", func(m *models.Worker) { m.Slots = 1 })
	parent := w.submit(w.task(func(n *engine.NewTask) { n.LimitKey, n.KeyLimit, n.DelaySeconds = "k", 1, 5 }))[0]
	w.advance(6 * time.Second)
	lease := w.claim(worker, 1)[0]
	kids := w.spawn(lease, "a", "b")
	if again := w.do(w.children(lease, "b", "c")); again.Submitted.Tasks[0].Row.ID != kids[1] || !again.Submitted.Tasks[0].Deduplicated || again.Submitted.Tasks[1].Deduplicated {
		t.Fatalf("spawned again %+v", again.Submitted.Tasks)
	}
	w.settle(worker, suspended(lease))
	w.want(parent, models.Pending)
	other := w.submit(w.task(func(n *engine.NewTask) { n.LimitKey, n.KeyLimit = "k", 1 }))[0]
	w.rebuild()
	for range 4 { // three children and the one that waited for the key, in the one slot that is free again
		for _, l := range w.claim(worker, 4) {
			w.settle(worker, ok(l))
		}
	}
	w.want(other, models.Succeeded)
	w.want(parent, models.Ready)
	back := w.claim(worker, 1)
	if len(back) != 1 || back[0].Row.ID != parent || back[0].Row.Attempt != 2 || back[0].Row.AttemptsUsed != 0 {
		t.Fatalf("came back as %+v", back)
	}
	w.refuses(models.LeaseLost, w.children(lease, "late"))
	w.settle(worker, ok(back[0]))
	w.want(parent, models.Succeeded)
	attempts := w.store.Attempts(models.TaskRef{Env: w.env, ID: parent})
	if len(attempts) != 2 || attempts[0].Outcome != models.AttemptSuspended {
		t.Errorf("its attempts are %+v", attempts)
	}
	if row := w.row(kids[0]); row.Parent != parent || row.Depth != 1 {
		t.Errorf("the child is %+v", row)
	}
}

func TestSuspendingAndTheEndOfChildrenMayMeetInOneBatch(t *testing.T) {
	for name, first := range map[string]bool{"children first": true, "parent first": false} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, engine.Config{})
			worker := w.worker("one")
			parent := w.submit(w.task())[0]
			lease := w.claim(worker, 1)[0]
			w.spawn(lease, "a", "b")
			kids := w.claim(worker, 2)
			results := []engine.Result{ok(kids[0]), failed(kids[1], "invalid_input"), suspended(lease)}
			if !first {
				results[0], results[2] = results[2], results[0]
			}
			w.settle(worker, results...)
			w.want(kids[1].Row.ID, models.DeadLetter) // for its parent it has ended
			w.want(parent, models.Ready)
		})
	}
	w := newWorld(t, engine.Config{})
	worker := w.worker("one")
	parent := w.submit(w.task())[0]
	lease := w.claim(worker, 1)[0]
	w.spawn(lease, "a")
	w.settle(worker, ok(w.claim(worker, 1)[0]))
	w.settle(worker, suspended(lease)) // nothing is left to wait for
	w.want(parent, models.Ready)
}

func TestOneBatchSpawnsSuspendsAndCancels(t *testing.T) {
	w := newWorld(t, engine.Config{})
	worker := w.worker("one")
	parent := w.submit(w.task())[0]
	lease := w.claim(worker, 1)[0]
	w.turn(w.children(lease, "a"), w.children(lease, "a", "b"),
		&engine.Command{Settle: &engine.Settle{Worker: worker.ID, Session: worker.Session, Results: []engine.Result{suspended(lease)}}},
		&engine.Command{Cancel: &engine.Cancel{Env: w.env, Task: parent}})
	w.want(parent, models.Cancelled)
	kids := w.store.Children(models.TaskRef{Env: w.env, ID: parent})
	if len(kids) != 2 {
		t.Fatalf("%d children", len(kids))
	}
	for _, id := range kids {
		w.want(id, models.Cancelled)
	}
}

func TestACancelReachesChildrenUnlessTheyAreDetached(t *testing.T) {
	w := newWorld(t, engine.Config{Slice: 3})
	worker := w.worker("one", func(m *models.Worker) { m.Slots = 20 })
	parent := w.submit(w.task())[0]
	lease := w.claim(worker, 1)[0]
	kids := w.spawn(lease, "a", "b", "c", "d", "e")
	apart := w.children(lease, "on its own")
	apart.Spawn.Tasks[0].Detach = true
	alone := w.do(apart).Submitted.Tasks[0].Row.ID
	runs := w.claim(worker, 1)[0]
	grandchild := w.spawn(runs, "deep")[0]
	if w.row(grandchild).Depth != 2 {
		t.Errorf("its depth is %d", w.row(grandchild).Depth)
	}
	w.do(&engine.Command{Cancel: &engine.Cancel{Env: w.env, Task: parent}})
	w.want(parent, models.CancelRequested)
	w.want(runs.Row.ID, models.CancelRequested)
	w.want(grandchild, models.Cancelled)
	for _, id := range kids[1:] {
		w.want(id, models.Cancelled)
	}
	w.want(alone, models.Ready)
	w.refuses(models.StateConflict, w.children(lease, "more"))
	w.settle(worker, suspended(lease))
	w.want(parent, models.Cancelled)
}

func TestALostAttemptsChildrenAreNotDoubled(t *testing.T) {
	w := newWorld(t, engine.Config{})
	one, two := w.worker("one"), w.worker("two")
	parent := w.submit(w.task())[0]
	lease := w.claim(one, 1)[0]
	kids := w.spawn(lease, "a", "b")
	w.advance(20 * time.Second)
	w.do(&engine.Command{Heartbeat: &engine.Heartbeat{Worker: two.ID, Session: two.Session, All: true}})
	w.advance(15 * time.Second)
	w.want(parent, models.Ready)
	var again engine.Lease
	for _, l := range w.claim(two, 3) {
		if l.Row.ID == parent {
			again = l
		}
	}
	if got := w.spawn(again, "a", "b"); got[0] != kids[0] || got[1] != kids[1] {
		t.Errorf("spawned %x after %x", got, kids)
	}
	if n := len(w.store.Children(models.TaskRef{Env: w.env, ID: parent})); n != 2 {
		t.Errorf("%d children", n)
	}
}

func TestChildrenWaitForTheirSiblings(t *testing.T) {
	w := newWorld(t, engine.Config{})
	worker := w.worker("one")
	w.submit(w.task())
	lease := w.claim(worker, 1)[0]
	first := w.spawn(lease, "a")[0]
	cmd := w.children(lease, "a", "b", "c")
	body := cmd.Spawn.Tasks
	body[1].DependsOn = []engine.Dependency{{Task: body[0].ID}}
	body[2].DependsOn = []engine.Dependency{{Task: body[1].ID, On: models.OnFailed}}
	made := w.do(cmd).Submitted.Tasks
	w.want(made[1].Row.ID, models.Pending)
	l := w.claim(worker, 1)[0]
	if l.Row.ID != first {
		t.Fatal("another one was ready")
	}
	w.settle(worker, ok(l))
	w.want(made[1].Row.ID, models.Ready)
	w.settle(worker, suspended(lease))
	w.settle(worker, ok(w.claim(worker, 1)[0]))
	w.want(made[2].Row.ID, models.Skipped)
	w.want(lease.Row.ID, models.Ready)
}

func TestWithoutChildrenThereIsNothingToWaitFor(t *testing.T) {
	w := newWorld(t, engine.Config{})
	worker := w.worker("one")
	id := w.submit(w.task())[0]
	w.settle(worker, suspended(w.claim(worker, 1)[0]))
	w.want(id, models.RetryWait)
	if row := w.row(id); row.AttemptsUsed != 1 || row.ErrorClass != "internal" {
		t.Errorf("it is %+v", row)
	}
}

func TestARunawayStopsAtItsWorkflowsLimit(t *testing.T) {
	w := newWorld(t, engine.Config{})
	worker := w.worker("one", func(m *models.Worker) { m.Slots = 2 })
	root := w.task(func(n *engine.NewTask) { n.Key = "root" })
	w.do(&engine.Command{Submit: &engine.Submit{Env: w.env, Tasks: []engine.NewTask{root}, Workflow: &engine.NewWorkflow{
		ID: w.id(), Name: "agent", Priority: 50, Input: json.RawMessage(`{}`), Budget: models.FlowBudget{Tasks: 500, Depth: 2},
	}}})
	lease := w.claim(worker, 1)[0]
	attempts, refused := 1_000_000, 0
	if testing.Short() {
		attempts = 100_000
	}
	serial := 0
	for done := 0; done < attempts; {
		cmd := &engine.Command{ID: w.id(), Spawn: &engine.Spawn{Env: w.env, Task: lease.Row.ID, Token: lease.Row.Token}}
		size := 1
		if refused > 20 {
			size = 1000 // it does not give up
		}
		for range size {
			serial++
			id := models.NewID(w.now, [10]byte{1, byte(serial), byte(serial >> 8), byte(serial >> 16)})
			cmd.Spawn.Tasks = append(cmd.Spawn.Tasks, engine.NewTask{ID: id, Key: fmt.Sprint("child-", serial), Class: models.Class{Type: "work"}, Priority: 50, MaxAttempts: 1, Input: json.RawMessage(`{}`)})
		}
		done += size
		for _, r := range w.once([]*engine.Command{cmd}) {
			if r.To != cmd {
				continue
			}
			if code := models.CodeOf(r.Err); code == models.WorkflowBudgetExceeded {
				refused++
			} else if code != "" {
				t.Fatal(r.Err)
			}
		}
	}
	if n := len(w.store.Tasks()); n != 500 {
		t.Fatalf("%d tasks, the limit is 500", n)
	}
	w.turn()
	child := w.claim(worker, 1)[0]
	w.refuses(models.WorkflowBudgetExceeded, w.children(child, "deeper"))
	other := w.submit(w.task())[0] // others are unharmed
	w.do(&engine.Command{Cancel: &engine.Cancel{Env: w.env, Task: lease.Row.ID}})
	if leases := w.claim(worker, 1); len(leases) != 0 {
		t.Fatalf("both slots are taken, claimed %d", len(leases))
	}
	w.settle(worker, suspended(lease))
	if leases := w.claim(worker, 1); len(leases) != 1 || leases[0].Row.ID != other {
		t.Fatalf("the other task did not start")
	}
}
