package engine_test

import (
	"testing"
	"time"

	"nightshift/models"
	"nightshift/scheduler/engine"
)

// A workflow's budget of retries is spent by the failures of all its tasks that another attempt follows; the first beyond it is
// a dead letter at once, before and after a takeover, and a raised limit lets its like go on.
func TestABudgetOfRetries(t *testing.T) {
	w := newWorld(t, engine.Config{})
	worker := w.worker("one")
	var told []models.Event
	w.saw = func(p *models.Plan) { told = append(told, p.Events...) }
	flow, _ := w.flow(func(n *engine.NewWorkflow) { n.Budget.Retries = 3 }, func(n *engine.NewTask) { n.MaxAttempts = 5 }, "a", "b", "c")
	fail := func(class string) map[models.ID]bool {
		t.Helper()
		hit := map[models.ID]bool{}
		for _, l := range w.claim(worker, 1) {
			w.settle(worker, failed(l, class))
			hit[l.Row.ID] = true
		}
		return hit
	}
	used := func(want int64) {
		t.Helper()
		if got := w.counted(flow).Used.Retries; got != want {
			t.Fatalf("%d retries are used, want %d", got, want)
		}
	}
	fail("network")
	used(1)
	fail("invalid_input") // permanent: no retry
	used(1)
	w.rebuild()
	if len(fail("network")) == 0 { // the workflow is read first
		fail("network")
	}
	used(2)
	w.advance(5 * time.Second)
	lost := w.claim(worker, 1)[0] // a lost lease is nobody's failure
	w.advance(31 * time.Second)
	w.want(lost.Row.ID, models.Ready)
	used(2)
	fail("rate_limited") // uses no attempt
	used(2)
	w.advance(40 * time.Second)
	fail("network")
	used(3)
	w.advance(40 * time.Second)
	next := w.claim(worker, 1)[0]
	w.rebuild()
	w.settle(worker, failed(next, "network"))
	dead := map[models.ID]bool{next.Row.ID: true}
	used(3)
	for id := range dead {
		w.want(id, models.DeadLetter)
		if row := w.row(id); !row.Has(models.RetriesSpent) || row.AttemptsUsed >= row.MaxAttempts {
			t.Fatalf("the dead letter %+v does not say why", row)
		}
	}
	exhausted, reason := 0, ""
	for _, e := range told {
		if e.Name == "workflow.budget_exhausted" && e.Reason == "max_retries" {
			exhausted++
		}
		if e.Name == "task.dead_lettered" && dead[e.Task] {
			reason = e.Reason
		}
	}
	if exhausted != 1 || reason == "" {
		t.Fatalf("told %d times that it is used up, and of the dead letter %q", exhausted, reason)
	}

	less := models.FlowBudget{Retries: 2}
	if err := w.steer(func(s *engine.Steer) { s.Edit = &engine.FlowEdit{Budget: &less} }, flow); models.CodeOf(err) != models.ValidationFailed {
		t.Fatalf("lowered: %v", err)
	}
	more := models.FlowBudget{Retries: 4}
	w.must(w.steer(func(s *engine.Steer) { s.Edit = &engine.FlowEdit{Budget: &more} }, flow))
	for id := range dead {
		w.do(&engine.Command{Redrive: &engine.Redrive{Env: w.env, Task: id, Reason: "again"}})
		if row := w.row(id); row.Has(models.RetriesSpent) {
			t.Fatal("another life still says that the retries are spent")
		}
	}
	before := w.counted(flow).Used.Retries
	for range 3 {
		fail("network")
		w.advance(40 * time.Second)
	}
	if used(4); before != 3 {
		t.Fatalf("a redrive has used %d", before-3)
	}
}

// Children, timeouts and items spend of the same budget.
func TestTimeoutsChildrenAndItemsSpendRetries(t *testing.T) {
	w := newWorld(t, engine.Config{})
	worker := w.worker("one")
	flow, ids := w.flow(func(n *engine.NewWorkflow) { n.Budget.Retries = 2 }, func(n *engine.NewTask) {
		n.MaxAttempts, n.HardSeconds = 4, 10
		n.Items = &models.Items{Total: 3}
	}, "a")
	l := w.claim(worker, 1)[0]
	w.settle(worker, items(l, "network", 1))
	if got := w.counted(flow).Used.Retries; got != 1 {
		t.Fatalf("items that failed used %d retries", got)
	}
	w.advance(40 * time.Second)
	w.claim(worker, 1)
	w.rebuild()
	w.advance(12 * time.Second) // it times out
	if got := w.counted(flow).Used.Retries; got != 2 {
		t.Fatalf("a timeout made it %d", got)
	}
	w.advance(60 * time.Second)
	w.settle(worker, failed(w.claim(worker, 1)[0], "network"))
	w.want(ids["a"], models.DeadLetter)
	if got := w.counted(flow).Used.Retries; got != 2 {
		t.Fatalf("in the end %d", got)
	}
	w.do(&engine.Command{Redrive: &engine.Redrive{Env: w.env, Task: ids["a"], Reason: "again"}})
	last := w.claim(worker, 1)[0]
	if s := w.items(ids["a"]); s.Done != 2 || len(s.Left) != 1 {
		t.Fatalf("its items are %+v", s)
	}
	w.settle(worker, ok(last))
	w.flowIs(flow, models.WorkflowSucceeded)
}

// A retry is answered with the workflow as it stands after it; of more dead letters than one batch moves the rest follows, and
// until it has, the workflow goes on, whatever becomes of those that came first.
func TestARetryIsAnsweredWithWhatItMade(t *testing.T) {
	w := newWorld(t, engine.Config{Slice: 3})
	worker := w.worker("one", func(m *models.Worker) { m.Slots = 20 })
	few, _ := w.flow(nil, nil, "a", "b")
	many, _ := w.flow(nil, nil, "a", "b", "c", "d", "e", "f", "g", "h")
	var told []models.Event
	w.saw = func(p *models.Plan) { told = append(told, p.Events...) }
	fail := func() {
		for _, l := range w.claim(worker, 20) {
			w.settle(worker, failed(l, "invalid_input"))
		}
	}
	fail()
	w.flowIs(few, models.WorkflowFailed)
	answer := w.do(&engine.Command{ID: w.id(), Steer: &engine.Steer{Env: w.env, Workflow: few, Retry: true}})
	if c := answer.Workflow.Counts; answer.Cursor != nil || answer.Workflow.State != models.WorkflowRunning || c[models.DeadLetter] != 0 || c[models.Ready] != 2 {
		t.Fatalf("answered %+v, goes on %v", answer.Workflow, answer.Cursor)
	}
	w.claim(worker, 2)
	told = nil
	retry := &engine.Command{ID: w.id(), Steer: &engine.Steer{Env: w.env, Workflow: many, Retry: true}}
	w.once([]*engine.Command{retry})
	answer = w.late[retry].Answer
	if c := answer.Workflow.Counts; answer.Cursor == nil || answer.Cursor.Done != 3 || answer.Workflow.State != models.WorkflowRunning || c[models.DeadLetter] != 5 || c[models.Ready] != 3 {
		t.Fatalf("answered %+v, goes on %+v", answer.Workflow, answer.Cursor)
	}
	claim := &engine.Command{ID: w.id(), Claim: &engine.Claim{Worker: worker.ID, Session: worker.Session, Most: 3}}
	w.rebuild()
	w.once([]*engine.Command{claim})
	if leases := w.late[claim].Answer.Claimed.Leases; len(leases) > 0 {
		var results []engine.Result
		for _, l := range leases {
			results = append(results, failed(l, "invalid_input"))
		}
		w.once([]*engine.Command{{ID: w.id(), Settle: &engine.Settle{Worker: worker.ID, Session: worker.Session, Results: results}}})
	}
	w.turn()
	for _, e := range told {
		if e.Workflow == many && e.Name == "workflow.failed" {
			t.Error("it failed while its dead letters were getting another life")
		}
	}
	again := *retry
	again.Resent = true
	if known := w.do(&again); known.Workflow.ID != many {
		t.Fatalf("sent again it says %+v", known)
	}
	fail()
	w.flowIs(many, models.WorkflowFailed)
}
