package engine_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"nightshift/models"
	"nightshift/scheduler/engine"
)

// flow submits a workflow; each task is named "key:dep,dep".
func (w *world) flow(change func(*engine.NewWorkflow), edit func(*engine.NewTask), tasks ...string) (models.ID, map[string]models.ID) {
	w.t.Helper()
	answer, err := w.tryFlow(change, edit, tasks...)
	w.must(err)
	ids := map[string]models.ID{}
	for _, t := range answer.Submitted.Tasks {
		ids[t.Row.Key] = t.Row.ID
	}
	return answer.Submitted.Workflow.ID, ids
}

func (w *world) tryFlow(change func(*engine.NewWorkflow), edit func(*engine.NewTask), tasks ...string) (*engine.Answer, error) {
	w.t.Helper()
	flow := &engine.NewWorkflow{ID: w.id(), Name: "night", Priority: 50, Input: json.RawMessage(`{}`)}
	if change != nil {
		change(flow)
	}
	return w.try(&engine.Command{Submit: &engine.Submit{Env: w.env, Tasks: w.members(edit, nil, tasks...), Workflow: flow}})
}

func (w *world) members(edit func(*engine.NewTask), known map[string]models.ID, tasks ...string) []engine.NewTask {
	ids := map[string]models.ID{}
	for key, id := range known {
		ids[key] = id
	}
	var out []engine.NewTask
	for _, text := range tasks {
		key, deps, _ := strings.Cut(text, ":")
		t := w.task(func(t *engine.NewTask) { t.Key, t.MaxAttempts = key, 1 })
		for dep := range strings.SplitSeq(deps, ",") {
			if dep != "" {
				t.DependsOn = append(t.DependsOn, engine.Dependency{Task: ids[dep], On: models.OnSucceeded})
			}
		}
		if edit != nil {
			edit(&t)
		}
		ids[key] = t.ID
		out = append(out, t)
	}
	return out
}

func (w *world) workflow(id models.ID) models.Workflow {
	w.t.Helper()
	row, ok := w.store.Workflow(models.TaskRef{Env: w.env, ID: id})
	if !ok {
		w.t.Fatalf("there is no workflow %x", id)
	}
	return row
}

func (w *world) steer(change func(*engine.Steer), id models.ID) error {
	w.t.Helper()
	s := &engine.Steer{Env: w.env, Workflow: id}
	change(s)
	_, err := w.try(&engine.Command{ID: w.id(), Steer: s})
	return err
}

func (w *world) flowIs(id models.ID, state models.WorkflowState) {
	w.t.Helper()
	if row := w.workflow(id); row.State != state {
		w.t.Fatalf("the workflow is %s, want %s; counts %v, gate %d", row.State, state, row.Counts, row.Gate)
	}
}

func (w *world) blockedBy(id models.ID) string {
	w.t.Helper()
	look := w.do(&engine.Command{Look: &engine.Look{Explain: &models.TaskRef{Env: w.env, ID: id}}}).Looked.Explain
	var reasons []string
	for _, b := range look.BlockedBy {
		reasons = append(reasons, b.Reason)
	}
	return strings.Join(reasons, " ")
}

func runIf(text string) func(*engine.NewTask) {
	return func(t *engine.NewTask) {
		if len(t.DependsOn) == 0 && t.Key != "alone" {
			return
		}
		t.HasCondition = true
		input, _ := json.Marshal(map[string]any{"run_if": text, "labels": map[string]string{"customer": "a"}})
		t.Input = input
		for i := range t.DependsOn {
			t.DependsOn[i].On = models.OnFinished
		}
	}
}

func TestAConditionIsJudgedByWhatBecameOfTheDependencies(t *testing.T) {
	for text, want := range map[string]models.State{
		`deps.exists(d, d.state == "dead_letter")`:                                models.Ready,
		`deps.all(d, d.state == "succeeded")`:                                     models.Skipped,
		`deps.exists(d, d.key == "a" && d.result.done)`:                           models.Ready,
		`deps.filter(d, d.state == "succeeded").size() == 1`:                      models.Ready,
		`labels.customer == "b"`:                                                  models.Skipped,
		`payload.nothing == 1`:                                                    models.Skipped,
		`deps.map(d, d.key) == ["a", "b"] || deps.map(d, d.key) == ["b", "a"]`:    models.Ready,
		`deps.exists(d, d.state == "dead_letter" && d.result != null)`:            models.Skipped,
		`deps.size() == 2 && deps.exists_one(d, d.result != null && d.key != "")`: models.Ready,
	} {
		t.Run(text, func(t *testing.T) {
			w := newWorld(t, engine.Config{})
			worker := w.worker("one")
			id, ids := w.flow(nil, runIf(text), "a", "b", "c:a,b", "d:c")
			if got := w.state(ids["c"]); got != models.Pending {
				t.Fatalf("%s: before anything ran it is %s", text, got)
			}
			for _, lease := range w.claim(worker, 5) {
				if lease.Row.Key == "a" {
					w.settle(worker, ok(lease))
				} else {
					w.settle(worker, failed(lease, "invalid_input"))
				}
			}
			if got := w.state(ids["c"]); got != want {
				t.Errorf("%s: %s, want %s", text, got, want)
			}
			if row := w.workflow(id); row.Counts.Total() != 4 {
				t.Errorf("%d tasks counted", row.Counts.Total())
			}
		})
	}
}

func TestAConditionWithoutDependenciesIsJudgedAtBirth(t *testing.T) {
	for text, want := range map[string]models.State{`labels.customer == "a"`: models.Ready, `payload.x == 1`: models.Skipped} {
		t.Run(text, func(t *testing.T) {
			w := newWorld(t, engine.Config{})
			_, ids := w.flow(nil, runIf(text), "alone")
			w.want(ids["alone"], want)
		})
	}
}

func TestManyConditionsAreJudgedInSlices(t *testing.T) {
	w := newWorld(t, engine.Config{})
	tasks := []string{"a"}
	for i := range 100 {
		tasks = append(tasks, fmt.Sprintf("t%d:a", i))
	}
	_, ids := w.flow(nil, runIf(`deps[0].result.done`), tasks...)
	worker := w.worker("one")
	w.settle(worker, ok(w.claim(worker, 1)[0]))
	for key, id := range ids {
		if key != "a" {
			w.want(id, models.Ready)
		}
	}
}

func TestAPausedWorkflowStartsNothingUntilItIsResumed(t *testing.T) {
	w := newWorld(t, engine.Config{})
	worker := w.worker("one")
	id, ids := w.flow(nil, nil, "a", "b", "c:a")
	other := w.submit(w.task())[0]
	running := w.claim(worker, 1)[0]
	w.must(w.steer(func(s *engine.Steer) { s.Pause, s.Reason = true, "look" }, id))
	w.flowIs(id, models.WorkflowPaused)
	if leases := w.claim(worker, 5); len(leases) != 1 || leases[0].Row.ID != other {
		t.Fatalf("a paused workflow let %d tasks start", len(leases))
	}
	w.settle(worker, ok(running))
	w.want(ids["c"], models.Ready)
	if got := w.blockedBy(ids["c"]); !strings.HasPrefix(got, "workflow_stopped") {
		t.Errorf("c is blocked by %q", got)
	}
	w.rebuild()
	if leases := w.claim(worker, 5); len(leases) != 0 {
		t.Fatal("the pause did not outlive a rebuild")
	}
	w.must(w.steer(func(s *engine.Steer) { s.Resume = true }, id))
	w.flowIs(id, models.WorkflowRunning)
	leases := w.claim(worker, 5)
	if len(leases) != 2 {
		t.Fatalf("%d tasks started after the resume", len(leases))
	}
	for _, lease := range leases {
		w.settle(worker, ok(lease))
	}
	w.flowIs(id, models.WorkflowSucceeded)
	if err := w.steer(func(s *engine.Steer) { s.Pause = true }, id); models.CodeOf(err) != models.StateConflict {
		t.Errorf("a workflow that has ended was paused: %v", err)
	}
}

func TestAWorkflowStopsOnFailureUntilItIsRetried(t *testing.T) {
	w := newWorld(t, engine.Config{})
	worker := w.worker("one")
	id, ids := w.flow(func(f *engine.NewWorkflow) { f.Stops = true }, nil, "a", "b", "c:b", "d:a")
	leases := w.claim(worker, 1)
	w.settle(worker, failed(leases[0], "invalid_input"))
	w.flowIs(id, models.WorkflowFailed)
	if leases := w.claim(worker, 5); len(leases) != 0 {
		t.Fatal("a stopped workflow started something")
	}
	if got := w.blockedBy(ids["b"]); !strings.HasPrefix(got, "workflow_stopped") {
		t.Errorf("b is blocked by %q", got)
	}
	w.want(ids["d"], models.Pending)
	w.must(w.steer(func(s *engine.Steer) { s.Retry = true }, id))
	w.flowIs(id, models.WorkflowRunning)
	for range 4 {
		for _, lease := range w.claim(worker, 5) {
			w.settle(worker, ok(lease))
		}
	}
	w.flowIs(id, models.WorkflowSucceeded)
	if err := w.steer(func(s *engine.Steer) { s.Retry = true }, id); models.CodeOf(err) != models.StateConflict {
		t.Errorf("a workflow without dead letters was retried: %v", err)
	}
}

func TestAStoppedWorkflowCanBeCancelled(t *testing.T) {
	w := newWorld(t, engine.Config{})
	worker := w.worker("one")
	id, ids := w.flow(func(f *engine.NewWorkflow) { f.Stops = true }, func(t *engine.NewTask) { t.FailWhenSpent = true }, "a", "b")
	w.settle(worker, failed(w.claim(worker, 1)[0], "invalid_input"))
	w.flowIs(id, models.WorkflowFailed)
	w.do(&engine.Command{Cancel: &engine.Cancel{Env: w.env, Workflow: id}})
	w.want(ids["b"], models.Cancelled)
	w.flowIs(id, models.WorkflowFailed)
	if gate := w.workflow(id).Gate; gate != 0 {
		t.Errorf("a workflow that has ended is still shut by %d", gate)
	}
}

func TestATaskSkippedByHandLetsTheNextOnesRun(t *testing.T) {
	w := newWorld(t, engine.Config{})
	worker := w.worker("one")
	id, ids := w.flow(nil, nil, "a", "b:a", "c:b")
	skip := func(key string) error {
		_, err := w.try(&engine.Command{Skip: &engine.Skip{Env: w.env, Task: ids[key], Reason: "not tonight"}})
		return err
	}
	w.settle(worker, failed(w.claim(worker, 1)[0], "invalid_input"))
	w.want(ids["a"], models.DeadLetter)
	w.must(skip("a"))
	w.must(skip("a"))
	w.want(ids["a"], models.Skipped)
	w.want(ids["b"], models.Ready)
	lease := w.claim(worker, 1)[0]
	if err := skip("b"); models.CodeOf(err) != models.StateConflict {
		t.Errorf("a running task was skipped: %v", err)
	}
	w.must(skip("c"))
	w.settle(worker, ok(lease))
	w.flowIs(id, models.WorkflowSucceeded)
	grown := w.submit(w.task(func(t *engine.NewTask) {
		t.DependsOn = []engine.Dependency{{Task: ids["c"], On: models.OnSucceeded}}
	}))[0]
	w.want(grown, models.Ready)
}

func TestAWorkflowGrowsWhileItRuns(t *testing.T) {
	w := newWorld(t, engine.Config{})
	worker := w.worker("one")
	id, ids := w.flow(func(f *engine.NewWorkflow) { f.Budget.Tasks = 4 }, nil, "a", "b:a")
	grow := func(grown int32, tasks ...string) error {
		_, err := w.try(&engine.Command{Submit: &engine.Submit{Env: w.env, Into: id, Grown: grown, Tasks: w.members(nil, ids, tasks...)}})
		return err
	}
	w.must(grow(0, "c:b", "d:a"))
	if err := grow(0, "e"); models.CodeOf(err) != models.Stale {
		t.Errorf("keys were looked at before it grew, yet: %v", err)
	}
	if err := grow(1, "e"); models.CodeOf(err) != models.WorkflowBudgetExceeded || !strings.Contains(err.Error(), "max_tasks") {
		t.Errorf("a fifth of four tasks: %v", err)
	}
	for range 4 {
		for _, lease := range w.claim(worker, 5) {
			w.settle(worker, ok(lease))
		}
	}
	w.flowIs(id, models.WorkflowSucceeded)
	if got := w.workflow(id).Counts[models.Succeeded]; got != 4 {
		t.Errorf("%d succeeded", got)
	}
	if err := grow(1, "f"); models.CodeOf(err) != models.StateConflict {
		t.Errorf("a workflow that has ended grew: %v", err)
	}
	if _, err := w.tryFlow(func(f *engine.NewWorkflow) { f.Budget.Tasks = 1 }, nil, "a", "b"); models.CodeOf(err) != models.WorkflowBudgetExceeded {
		t.Errorf("two tasks of one: %v", err)
	}
}

func spent(l engine.Lease, usd float64, tokens int) engine.Result {
	r := ok(l)
	r.Usage, _ = json.Marshal(map[string]any{"cost_usd": usd, "tokens_in": tokens})
	return r
}

func TestCostHoldsWhatIsLeft(t *testing.T) {
	w := newWorld(t, engine.Config{})
	worker := w.worker("one", func(r *models.Worker) { r.Slots = 50 })
	var tasks []string
	for i := range 30 {
		tasks = append(tasks, fmt.Sprintf("t%d", i))
	}
	id, ids := w.flow(func(f *engine.NewWorkflow) { f.Budget.CostMicro = 1_000_000 }, nil, tasks...)
	first := w.claim(worker, 50)
	if len(first) != 4 {
		t.Fatalf("%d start while nothing is known of the cost", len(first))
	}
	for _, lease := range first {
		w.settle(worker, spent(lease, 0.1, 0))
	}
	second := w.claim(worker, 50)
	if len(second) != 6 {
		t.Fatalf("0.4 of 1.0 is used at 0.1 each, %d more start", len(second))
	}
	w.rebuild()
	for _, lease := range second {
		w.settle(worker, spent(lease, 0.1, 0))
	}
	if leases := w.claim(worker, 50); len(leases) != 0 {
		t.Fatalf("%d start though all is used", len(leases))
	}
	row := w.workflow(id)
	if row.Used.CostMicro != 1_000_000 || row.Gate != 0 || row.State != models.WorkflowRunning {
		t.Errorf("used %+v, gate %d, %s", row.Used, row.Gate, row.State)
	}
	if got := w.blockedBy(ids["t29"]); !strings.HasPrefix(got, "workflow_budget") {
		t.Errorf("blocked by %q", got)
	}
	if err := w.steer(func(s *engine.Steer) { s.Edit = &engine.FlowEdit{Budget: &models.FlowBudget{CostMicro: 500_000}} }, id); models.CodeOf(err) != models.ValidationFailed {
		t.Errorf("a limit was lowered: %v", err)
	}
	w.must(w.steer(func(s *engine.Steer) { s.Edit = &engine.FlowEdit{Budget: &models.FlowBudget{CostMicro: 1_200_000}} }, id))
	if leases := w.claim(worker, 50); len(leases) != 2 {
		t.Fatalf("0.2 more were given, %d start", len(leases))
	}
}

func TestTokensHoldWhatIsLeftAndSayWhenTheyAreOver(t *testing.T) {
	w := newWorld(t, engine.Config{})
	worker := w.worker("one")
	id, _ := w.flow(func(f *engine.NewWorkflow) { f.Budget.Tokens = 100 }, nil, "a", "b", "c")
	w.settle(worker, spent(w.claim(worker, 1)[0], 0, 100))
	if leases := w.claim(worker, 5); len(leases) != 0 {
		t.Fatalf("%d start without tokens", len(leases))
	}
	said := 0
	for _, ev := range w.store.Events() {
		if ev.Name == "workflow.budget_exhausted" && ev.Workflow == id && ev.Reason == "max_tokens" {
			said++
		}
	}
	if said != 1 {
		t.Errorf("it was said %d times that the tokens are over", said)
	}
}

func TestTheRunTimeEndsAWorkflow(t *testing.T) {
	w := newWorld(t, engine.Config{})
	worker := w.worker("one")
	id, ids := w.flow(func(f *engine.NewWorkflow) { f.Budget.RuntimeSeconds = 20 }, nil, "a", "b", "c:a")
	lease := w.claim(worker, 1)[0]
	w.advance(5 * time.Second)
	w.rebuild() // the moment outlives the brain
	w.advance(14 * time.Second)
	w.flowIs(id, models.WorkflowRunning)
	w.advance(3 * time.Second)
	w.want(ids["b"], models.Cancelled)
	w.want(ids["c"], models.Cancelled)
	w.want(lease.Row.ID, models.CancelRequested)
	w.settle(worker, ok(lease))
	w.flowIs(id, models.WorkflowFailed)
	names := ""
	for _, ev := range w.store.Events() {
		if ev.Workflow == id && strings.HasPrefix(ev.Name, "workflow.") {
			names += ev.Name + " "
		}
	}
	if names != "workflow.started workflow.budget_exhausted workflow.failed " {
		t.Errorf("told %s", names)
	}
}

func TestTheWorkflowsPriorityMovesItsTasks(t *testing.T) {
	w := newWorld(t, engine.Config{})
	worker := w.worker("one", func(r *models.Worker) { r.Slots = 1 })
	_, first := w.flow(nil, nil, "a")
	id, second := w.flow(nil, nil, "b", "c:b")
	w.must(w.steer(func(s *engine.Steer) {
		p := int16(90)
		s.Edit = &engine.FlowEdit{Priority: &p, Labels: map[string]*string{"x": new("y"), "z": nil}}
	}, id))
	lease := w.claim(worker, 1)[0]
	if lease.Row.ID != second["b"] || lease.Row.Priority != 90 {
		t.Fatalf("%s goes first", lease.Row.Key)
	}
	w.settle(worker, ok(lease))
	if lease := w.claim(worker, 1)[0]; lease.Row.ID != second["c"] {
		t.Fatalf("%s goes second", lease.Row.Key)
	}
	w.want(first["a"], models.Ready)
	if row := w.workflow(id); row.Priority != 90 || string(row.Input) != `{"labels":{"x":"y"}}` {
		t.Errorf("the row says %d, %s", row.Priority, row.Input)
	}
}
