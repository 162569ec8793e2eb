package engine_test

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	"nightshift/models"
	"nightshift/scheduler/engine"
)

// slice submits a batch of one slice with n items.
func (w *world) slice(n int32, change ...func(*engine.NewTask)) (flow, task models.ID) {
	w.t.Helper()
	one := w.task(append(change, func(t *engine.NewTask) { t.Key, t.Items = "0", &models.Items{Total: n} })...)
	flow = w.id()
	w.do(&engine.Command{Submit: &engine.Submit{Env: w.env, Tasks: []engine.NewTask{one}, Workflow: &engine.NewWorkflow{ID: flow, Name: "batch", Input: json.RawMessage(`{}`), Items: n}}})
	return flow, one.ID
}

// carried are the items that the next attempt of a task carries.
func (w *world) carried(task models.ID) (out []int32) {
	w.t.Helper()
	s := w.store.Items(models.TaskRef{Env: w.env, ID: task})
	s.Left = slices.Clone(s.Left)
	s.Start(w.row(task).AttemptsUsed)
	for _, at := range s.Claim() {
		out = append(out, s.Left[at].Index)
	}
	return out
}

func (w *world) items(task models.ID) models.Items {
	return w.store.Items(models.TaskRef{Env: w.env, ID: task})
}

func items(l engine.Lease, class string, failed ...int32) engine.Result {
	r := ok(l)
	r.Items = &engine.ItemsReport{}
	for _, i := range failed {
		r.Items.Failed = append(r.Items.Failed, engine.ItemFailed{Index: i, Class: class, Message: "broken"})
	}
	return r
}

func TestFailedItemsAreTriedAgainWithoutTheOthers(t *testing.T) {
	w := newWorld(t, engine.Config{})
	worker := w.worker("one")
	flow, task := w.slice(5)
	if got := w.carried(task); !slices.Equal(got, []int32{0, 1, 2, 3, 4}) {
		t.Fatalf("the first attempt carries %v", got)
	}
	w.settle(worker, items(w.claim(worker, 1)[0], "network", 1, 3))
	w.want(task, models.RetryWait)
	if s := w.items(task); s.Done != 3 || len(s.Left) != 2 || s.Left[1].Class != "network" {
		t.Fatalf("after the first attempt: %+v", s)
	}
	w.advance(5 * time.Second)
	if got := w.carried(task); !slices.Equal(got, []int32{1, 3}) {
		t.Fatalf("the second attempt carries %v", got)
	}
	w.settle(worker, items(w.claim(worker, 1)[0], "network", 1)) // the second of the two, which is item 3
	w.advance(10 * time.Second)
	if got := w.carried(task); !slices.Equal(got, []int32{3}) {
		t.Fatalf("the third attempt carries %v", got)
	}
	w.settle(worker, ok(w.claim(worker, 1)[0]))
	w.want(task, models.Succeeded)
	if s := w.items(task); s.Done != 5 || len(s.Left) != 0 {
		t.Errorf("at the end: %+v", s)
	}
	if row, _ := w.store.Workflow(models.TaskRef{Env: w.env, ID: flow}); row.State != models.WorkflowSucceeded || row.Items != 5 {
		t.Errorf("the batch is %s of %d items", row.State, row.Items)
	}
	outcomes := []models.Outcome{}
	for _, a := range w.store.Attempts(models.TaskRef{Env: w.env, ID: task}) {
		outcomes = append(outcomes, a.Outcome)
	}
	if !slices.Equal(outcomes, []models.Outcome{models.AttemptFailed, models.AttemptFailed, models.AttemptSucceeded}) {
		t.Errorf("attempts ended as %v", outcomes)
	}
}

func TestWhatIsLeftOfAnItemAfterTheLastAttemptIsTheDeadLetter(t *testing.T) {
	w := newWorld(t, engine.Config{})
	worker := w.worker("one")
	_, task := w.slice(4)
	for _, failed := range [][]int32{{0, 2}, {0, 1}} { // both twice
		w.settle(worker, items(w.claim(worker, 1)[0], "network", failed...))
		w.advance(10 * time.Second)
	}
	if got := w.carried(task); !slices.Equal(got, []int32{0}) {
		t.Fatalf("what keeps failing is tried with %v", got)
	}
	w.settle(worker, items(w.claim(worker, 1)[0], "network", 0))
	w.advance(time.Second) // the other has not been tried as often: it does not wait
	w.want(task, models.Ready)
	if got := w.carried(task); !slices.Equal(got, []int32{2}) {
		t.Fatalf("then %v is tried", got)
	}
	w.settle(worker, items(w.claim(worker, 1)[0], "timeout", 0))
	w.want(task, models.DeadLetter)
	s := w.items(task)
	if s.Done != 2 || len(s.Left) != 2 || !s.Left[0].Over || s.Left[1].Class != "timeout" {
		t.Fatalf("the dead letter: %+v", s)
	}
	w.refuses(models.ValidationFailed, &engine.Command{ID: w.id(), Redrive: &engine.Redrive{Env: w.env, Task: task, Payload: json.RawMessage(`{}`)}})
	w.do(&engine.Command{ID: w.id(), Redrive: &engine.Redrive{Env: w.env, Task: task}})
	if got := w.carried(task); !slices.Equal(got, []int32{0, 2}) {
		t.Fatalf("after a redrive an attempt carries %v", got)
	}
	w.settle(worker, ok(w.claim(worker, 1)[0]))
	w.want(task, models.Succeeded)
	if s := w.items(task); s.Done != 4 || len(s.Left) != 0 {
		t.Errorf("after the redrive: %+v", s)
	}
}

func TestAPoisonousItemIsFoundByTryingEachAlone(t *testing.T) {
	w := newWorld(t, engine.Config{})
	worker := w.worker("one")
	_, task := w.slice(3)
	for range 2 { // the whole attempt fails: nobody knows by which
		w.settle(worker, failed(w.claim(worker, 1)[0], "out_of_memory"))
		w.advance(10 * time.Second)
	}
	for want := range int32(3) {
		if got := w.carried(task); !slices.Equal(got, []int32{want}) {
			t.Fatalf("carried %v, want %d alone", got, want)
		}
		lease := w.claim(worker, 1)[0]
		if want == 1 {
			w.settle(worker, failed(lease, "out_of_memory"))
		} else {
			w.settle(worker, ok(lease))
		}
		w.advance(time.Second)
	}
	w.want(task, models.DeadLetter)
	if s := w.items(task); s.Done != 2 || len(s.Left) != 1 || s.Left[0].Index != 1 || s.Left[0].Class != "out_of_memory" {
		t.Errorf("found %+v", s)
	}
}

func TestItemsEndByTheirClassAndByTimeouts(t *testing.T) {
	w := newWorld(t, engine.Config{})
	worker := w.worker("one")
	_, permanent := w.slice(3)
	w.settle(worker, items(w.claim(worker, 1)[0], "invalid_input", 2))
	w.want(permanent, models.DeadLetter) // no further attempt makes it right
	if s := w.items(permanent); s.Done != 2 || len(s.Left) != 1 {
		t.Errorf("permanent: %+v", s)
	}
	_, slow := w.slice(2, func(n *engine.NewTask) { n.HardSeconds, n.MaxAttempts = 5, 5 })
	w.claim(worker, 1)
	w.advance(7 * time.Second)
	if s := w.items(slow); len(s.Left) != 2 || s.Left[0].Class != "timeout" || w.row(slow).AttemptsUsed != 1 {
		t.Errorf("after a timeout: %+v, %d used", s, w.row(slow).AttemptsUsed)
	}
	_, lost := w.slice(2)
	lease := w.claim(worker, 4)
	w.advance(40 * time.Second)
	if s := w.items(lost); len(s.Left) != 0 || w.row(lost).AttemptsUsed != 0 || len(lease) == 0 {
		t.Errorf("a lost lease counted: %+v", s)
	}
}

func TestAReportThatDoesNotFitTheItemsIsRefused(t *testing.T) {
	w := newWorld(t, engine.Config{})
	worker := w.worker("one")
	seven := int32(7)
	one := int32(1)
	for name, change := range map[string]func(*engine.ItemsReport){
		"beyond":   func(r *engine.ItemsReport) { r.Failed[0].Index = 3 },
		"below":    func(r *engine.ItemsReport) { r.Failed[0].Index = -1 },
		"twice":    func(r *engine.ItemsReport) { r.Failed = append(r.Failed, r.Failed[0]) },
		"too many": func(r *engine.ItemsReport) { r.Done = &seven },
		"not all":  func(r *engine.ItemsReport) { r.Done = &one },
	} {
		_, task := w.slice(3, func(n *engine.NewTask) { n.MaxAttempts = 1 })
		r := items(w.claim(worker, 1)[0], "network", 0)
		change(r.Items)
		if s := w.settle(worker, r)[0]; !s.Accepted || s.Code != models.ValidationFailed {
			t.Errorf("%s: %+v", name, s)
		}
		w.want(task, models.DeadLetter)
		if s := w.items(task); s.Done != 0 || len(s.Left) != 3 || s.Left[0].Class != "malformed_output" {
			t.Errorf("%s: %+v", name, s)
		}
	}
	plain := w.submit(w.task())[0]
	if s := w.settle(worker, items(w.claim(worker, 1)[0], "network", 0))[0]; s.Code != models.ValidationFailed {
		t.Errorf("items of a task that has none: %+v", s)
	}
	w.want(plain, models.RetryWait)
}

func TestACancelledSliceKeepsWhatIsDone(t *testing.T) {
	w := newWorld(t, engine.Config{})
	worker := w.worker("one")
	flow, task := w.slice(3)
	lease := w.claim(worker, 1)[0]
	w.do(&engine.Command{ID: w.id(), Cancel: &engine.Cancel{Env: w.env, Workflow: flow}})
	w.settle(worker, items(lease, "network", 1))
	w.want(task, models.Cancelled)
	if s := w.items(task); s.Done != 2 || len(s.Left) != 1 {
		t.Errorf("kept %+v", s)
	}
}

func TestAWatermarkMovesWithTheLastItem(t *testing.T) {
	w := newWorld(t, engine.Config{})
	worker := w.worker("one")
	_, task := w.slice(2, func(n *engine.NewTask) { n.LimitKey, n.KeyLimit = engine.MarkKey+"docs", 1 })
	version := func() int64 {
		ref := models.IdemRef{Env: w.env, Key: "docs"}
		facts, err := w.store.Facts(w.ctx, &models.Need{Watermarks: []models.IdemRef{ref}})
		w.must(err)
		return facts.Watermarks[ref].Version
	}
	r := items(w.claim(worker, 1)[0], "network", 0)
	r.Mark = &engine.MarkMove{Value: json.RawMessage(`1`)}
	w.settle(worker, r)
	if version() != 0 {
		t.Fatal("it moved before all was done")
	}
	w.advance(5 * time.Second)
	r = ok(w.claim(worker, 1)[0])
	r.Mark = &engine.MarkMove{Value: json.RawMessage(`2`)}
	w.settle(worker, r)
	w.want(task, models.Succeeded)
	if version() != 1 {
		t.Error("it did not move")
	}
}
