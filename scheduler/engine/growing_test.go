package engine_test

import (
	"fmt"
	"testing"
	"time"

	"nightshift/models"
	"nightshift/scheduler/engine"
)

// stageInto writes tasks to the side as a replica does before it adds them to a workflow; what they wait for outside the body
// is judged when they enter. It answers the flip that makes them part of it.
func (w *world) stageInto(flow models.ID, tasks ...engine.NewTask) *engine.Flip {
	w.t.Helper()
	in := w.do(&engine.Command{Intern: &engine.Intern{Env: w.env, Items: []engine.InternItem{{Class: tasks[0].Class}}}}).Interned[0]
	body := &models.StagedBody{Staging: models.Staging{ID: w.id(), Env: w.env, At: w.now}}
	inside := map[models.ID]bool{}
	for i := range tasks {
		inside[tasks[i].ID] = true
	}
	wide := int32(0)
	for _, t := range tasks {
		row := models.Task{
			Env: w.env, ID: t.ID, State: models.Staged, Lane: in.Lane, Class: in.Class, Priority: t.Priority, CreatedAt: w.now, UpdatedAt: w.now,
			MaxAttempts: t.MaxAttempts, Workflow: flow, Key: t.Key, Flags: models.HasDependants, HardSeconds: 60,
		}
		outside := int32(0)
		for _, d := range t.DependsOn {
			edge := models.Edge{Env: w.env, From: d.Task, To: t.ID, On: d.On}
			if inside[d.Task] {
				row.Remaining++
			} else {
				edge.State = models.EdgeStaged
				outside++
			}
			body.Edges = append(body.Edges, edge)
		}
		wide = max(wide, outside)
		body.Tasks = append(body.Tasks, row)
		body.Specs = append(body.Specs, models.Spec{Env: w.env, ID: t.ID, Input: t.Input, Payload: t.Payload})
	}
	w.must(w.store.Stage(w.ctx, body))
	return &engine.Flip{Env: w.env, Staging: body.Staging.ID, Tasks: int32(len(tasks)), Into: flow, Wide: wide, Grown: w.workflow(flow).Grown}
}

// counted is a workflow with the counts that both stores take from its tasks.
func (w *world) counted(id models.ID) models.Workflow {
	w.t.Helper()
	ref := models.TaskRef{Env: w.env, ID: id}
	facts, err := w.store.Facts(w.ctx, &models.Need{Workflows: []models.TaskRef{ref}})
	w.must(err)
	return facts.Workflows[ref]
}

// A large body that waits for tasks that are there is nothing to anybody before its flip, and then enters in slices: what has
// ended fires its edges or kills them at once, what has not does when it ends, each once, whoever is the brain by then.
func TestAWorkflowGrowsByALargeBodyThatWaitsForWhatIsThere(t *testing.T) {
	w := newWorld(t, engine.Config{Slice: 4})
	worker := w.worker("one", func(m *models.Worker) { m.Slots = 50 })
	flow, ids := w.flow(nil, nil, "done", "broken", "runs", "late:runs", "dead")
	leases := map[models.ID]engine.Lease{}
	for _, l := range w.claim(worker, 10) {
		leases[l.Row.ID] = l
	}
	w.settle(worker, ok(leases[ids["done"]]), failed(leases[ids["broken"]], "invalid_input"), failed(leases[ids["dead"]], "invalid_input"))
	w.do(&engine.Command{Discard: &engine.Discard{Env: w.env, Task: ids["broken"], Reason: "enough"}})
	w.want(ids["broken"], models.Failed)

	on := func(key string, on models.On) engine.Dependency { return engine.Dependency{Task: ids[key], On: on} }
	var tasks []engine.NewTask
	add := func(key string, deps ...engine.Dependency) {
		tasks = append(tasks, w.task(func(n *engine.NewTask) { n.Key, n.MaxAttempts, n.DependsOn = key, 1, deps }))
		ids[key] = tasks[len(tasks)-1].ID
	}
	add("after-done", on("done", models.OnSucceeded))
	add("never", on("broken", models.OnSucceeded))
	add("rescue", on("broken", models.OnFailed), on("done", models.OnFinished))
	add("after-runs", on("runs", models.OnSucceeded), on("done", models.OnSucceeded))
	add("after-late", on("late", models.OnSucceeded))
	add("after-dead", on("dead", models.OnSucceeded))
	add("clean-up", on("dead", models.OnFinished))
	add("mixed", on("runs", models.OnFinished), engine.Dependency{Task: tasks[0].ID})
	add("alone")

	before := w.counted(flow)
	flip := w.stageInto(flow, tasks...)
	if after := w.counted(flow); after.Counts != before.Counts {
		t.Fatalf("before the flip it counts %v, not %v", after.Counts, before.Counts)
	}
	w.rebuild()
	grown := w.do(&engine.Command{Flip: flip}).Submitted.Workflow
	if grown.ID != flow || grown.Counts.Total() != before.Counts.Total()+int32(len(tasks)) {
		t.Fatalf("grown %+v", grown)
	}
	// The turn above ran all slices; what was open then moves now.
	for key, want := range map[string]models.State{
		"after-done": models.Ready, "never": models.Skipped, "rescue": models.Ready, "after-runs": models.Pending, "after-late": models.Pending,
		"after-dead": models.Pending, "clean-up": models.Ready, "mixed": models.Pending, "alone": models.Ready,
	} {
		if got := w.state(ids[key]); got != want {
			t.Errorf("%s is %s, want %s", key, got, want)
		}
	}
	w.rebuild()
	w.settle(worker, ok(leases[ids["runs"]]))
	w.want(ids["after-runs"], models.Ready)
	for left := w.claim(worker, 20); len(left) > 0; left = w.claim(worker, 20) {
		for _, l := range left {
			w.settle(worker, ok(l))
		}
	}
	w.want(ids["after-late"], models.Succeeded)
	w.want(ids["mixed"], models.Succeeded)
	w.flowIs(flow, models.WorkflowFailed) // its dead letter holds after-dead
	w.do(&engine.Command{Redrive: &engine.Redrive{Env: w.env, Task: ids["dead"], Reason: "again"}})
	for left := w.claim(worker, 20); len(left) > 0; left = w.claim(worker, 20) {
		w.settle(worker, ok(left[0]))
	}
	w.want(ids["after-dead"], models.Succeeded)
	if row := w.counted(flow); row.Counts.Left() != 0 || row.Counts.Total() != int32(14) {
		t.Fatalf("in the end it counts %v", row.Counts)
	}
}

// What a slice finds ended between the flip and its entry, it judges as it ended; a source of the same workflow that has
// itself not entered yet is waited for.
func TestASourceMayEndOrEnterWhileABodyEnters(t *testing.T) {
	w := newWorld(t, engine.Config{Slice: 2})
	worker := w.worker("one", func(m *models.Worker) { m.Slots = 50 })
	flow, ids := w.flow(nil, nil, "first", "stays")
	lease := w.claim(worker, 1)[0]
	source := lease.Row.ID
	after := func(id models.ID, key string) engine.NewTask {
		return w.task(func(n *engine.NewTask) { n.Key, n.MaxAttempts, n.DependsOn = key, 1, []engine.Dependency{{Task: id}} })
	}
	var tasks []engine.NewTask
	for i := range 7 {
		tasks = append(tasks, after(source, fmt.Sprint("a", i)))
	}
	second := []engine.NewTask{after(tasks[6].ID, "b0"), after(tasks[0].ID, "b1")}
	flip, more := w.stageInto(flow, tasks...), w.stageInto(flow, second...)
	more.Grown = 1
	w.once([]*engine.Command{{ID: w.id(), Flip: flip}})
	w.once(nil) // the first slice is in
	w.once([]*engine.Command{{ID: w.id(), Flip: more}, {ID: w.id(), Settle: &engine.Settle{Worker: worker.ID, Session: worker.Session, Results: []engine.Result{ok(lease)}}}})
	small := after(tasks[5].ID, "small")
	if w.state(tasks[5].ID) != models.Staged {
		t.Fatal("the story is to add a task behind one that has not entered")
	}
	w.do(&engine.Command{Submit: &engine.Submit{Env: w.env, Tasks: []engine.NewTask{small}, Into: flow, Grown: 2}})
	w.turn()
	for _, task := range tasks {
		w.want(task.ID, models.Ready)
	}
	for left := w.claim(worker, 20); len(left) > 0; left = w.claim(worker, 20) {
		for _, l := range left {
			w.settle(worker, ok(l))
		}
	}
	for _, task := range append(append(tasks, second...), small) {
		w.want(task.ID, models.Succeeded)
	}
	w.want(ids["stays"], models.Succeeded)
	w.flowIs(flow, models.WorkflowSucceeded)
}

// A body is refused at its flip where the workflow does not take it; it stays nothing to anybody, whatever becomes of the
// workflow.
func TestAWorkflowTakesALargeBodyOnlyWhileItMay(t *testing.T) {
	w := newWorld(t, engine.Config{Slice: 4})
	worker := w.worker("one")
	flow, ids := w.flow(func(n *engine.NewWorkflow) { n.Budget.Tasks = 5 }, nil, "a", "b")
	tasks := func(n int) (list []engine.NewTask) {
		for i := range n {
			list = append(list, w.task(func(t *engine.NewTask) { t.Key = fmt.Sprint("x", i, t.ID[12:]) }))
		}
		return list
	}
	refused := func(flip *engine.Flip, want models.Code) {
		t.Helper()
		if _, err := w.try(&engine.Command{Flip: flip}); models.CodeOf(err) != want {
			t.Fatalf("%v, want %s", err, want)
		}
		if row := w.counted(flow); row.Counts.Total() != 2 && row.Counts.Total() != 4 || row.Counts[models.Staged] > 0 {
			t.Fatalf("it counts %v", row.Counts)
		}
	}
	refused(w.stageInto(flow, tasks(4)...), models.WorkflowBudgetExceeded)
	stale := w.stageInto(flow, tasks(1)...)
	stale.Grown = 7
	refused(stale, models.Stale)
	lost := w.stageInto(flow, tasks(1)...)
	lost.Into = w.id()
	refused(lost, models.NotFound)

	good := &engine.Command{ID: w.id(), Flip: w.stageInto(flow, tasks(2)...)}
	w.do(good)
	again := *good
	again.Resent = true
	if row := w.do(&again).Submitted.Workflow; row.ID != flow || row.Counts.Total() != 4 || w.workflow(flow).Grown != 1 {
		t.Fatalf("sent again it says %+v", row)
	}

	waits := w.stageInto(flow, tasks(1)...)
	w.do(&engine.Command{Cancel: &engine.Cancel{Env: w.env, Workflow: flow, Reason: "enough"}})
	w.want(ids["a"], models.Cancelled)
	refused(waits, models.StateConflict)
	w.flowIs(flow, models.WorkflowCancelled)
	w.advance(2 * 1e9)
	if left := w.claim(worker, 5); len(left) > 0 {
		t.Fatalf("%d are claimed of a cancelled workflow", len(left))
	}
}

// What was flipped and has not entered is cancelled with its workflow; its edges to tasks outside never fire.
func TestACancelReachesWhatHasNotEntered(t *testing.T) {
	w := newWorld(t, engine.Config{Slice: 2})
	worker := w.worker("one")
	flow, ids := w.flow(nil, nil, "a")
	lease := w.claim(worker, 1)[0]
	var tasks []engine.NewTask
	for i := range 9 {
		tasks = append(tasks, w.task(func(n *engine.NewTask) {
			n.Key, n.DependsOn = fmt.Sprint("x", i), []engine.Dependency{{Task: ids["a"]}}
		}))
	}
	flip := w.stageInto(flow, tasks...)
	w.once([]*engine.Command{{ID: w.id(), Flip: flip}})
	w.once(nil)
	w.rebuild()
	w.do(&engine.Command{Cancel: &engine.Cancel{Env: w.env, Workflow: flow, Reason: "enough"}})
	w.settle(worker, ok(lease))
	for _, task := range tasks {
		w.want(task.ID, models.Cancelled)
	}
	w.flowIs(flow, models.WorkflowCancelled)
	if row := w.counted(flow); row.Counts[models.Cancelled] != 9 || row.Counts[models.Succeeded] != 1 || row.Counts.Total() != 10 {
		t.Fatalf("it counts %v", row.Counts)
	}
}

// A body for a workflow that retention has removed meanwhile is refused at its flip, and nothing ever shows it.
func TestABodyForAWorkflowThatIsGoneIsNeverSeen(t *testing.T) {
	w := newWorld(t, engine.Config{Slice: 2})
	worker := w.worker("one", func(m *models.Worker) { m.Slots = 50 })
	flow, _ := w.flow(nil, nil, "a")
	tasks := []engine.NewTask{w.task(func(n *engine.NewTask) { n.Key = "x" }), w.task(func(n *engine.NewTask) { n.Key = "y" })}
	flip := w.stageInto(flow, tasks...)
	w.settle(worker, ok(w.claim(worker, 1)[0]))
	w.flowIs(flow, models.WorkflowSucceeded)
	w.store.Forget(models.TaskRef{Env: w.env, ID: flow})
	w.rebuild()
	for range 2 { // the second is the same call, sent again
		if _, err := w.try(&engine.Command{Flip: flip}); models.CodeOf(err) != models.NotFound {
			t.Fatalf("told %v", err)
		}
		w.rebuild()
		w.advance(time.Minute)
		for _, task := range tasks {
			w.want(task.ID, models.Staged)
		}
		if leases := w.claim(worker, 5); len(leases) > 0 {
			t.Fatalf("%d were claimed", len(leases))
		}
	}
}

// Rows that are still to enter a workflow whose row is gone never become ready, and hold up no other work of many rows.
func TestRowsOfAWorkflowThatIsGoneDoNotEnter(t *testing.T) {
	w := newWorld(t, engine.Config{Slice: 2})
	worker := w.worker("one", func(m *models.Worker) { m.Slots = 50 })
	flow, _ := w.flow(nil, nil, "a")
	var tasks []engine.NewTask
	for i := range 7 {
		tasks = append(tasks, w.task(func(n *engine.NewTask) { n.Key = fmt.Sprint("x", i) }))
	}
	w.once([]*engine.Command{{ID: w.id(), Flip: w.stageInto(flow, tasks...)}})
	w.store.Forget(models.TaskRef{Env: w.env, ID: flow})
	w.rebuild() // by a brain that never knew it
	other, ids := w.flow(nil, nil, "b", "c", "d", "e", "f")
	w.do(&engine.Command{Cancel: &engine.Cancel{Env: w.env, Workflow: other, Reason: "enough"}})
	w.turn()
	for key, id := range ids {
		if got := w.state(id); got != models.Cancelled {
			t.Errorf("%s is %s: the cancel of another workflow is held up", key, got)
		}
	}
	for _, task := range tasks {
		w.want(task.ID, models.Cancelled)
	}
	for _, lease := range w.claim(worker, 20) {
		if lease.Row.Key != "a" {
			t.Errorf("%s was claimed", lease.Row.Key)
		}
	}
	if w.engine.Busy() {
		t.Error("the engine still means to do something")
	}
}
