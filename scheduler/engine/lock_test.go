package engine_test

import (
	"testing"

	"nightshift/models"
	"nightshift/scheduler/engine"
)

func TestLocksAreListedAndEnded(t *testing.T) {
	w := newWorld(t, engine.Config{})
	worker := w.worker("one")
	keyed := func(n *engine.NewTask) { n.LimitKey, n.KeyLimit = "account:42", 1 }
	ids := w.submit(w.task(keyed), w.task(keyed), w.task(keyed), w.task())
	w.claim(worker, 4)
	locks := func() []engine.Lock {
		return w.do(&engine.Command{Look: &engine.Look{Locks: w.env}}).Looked.Locks
	}
	if got := locks(); len(got) != 1 || got[0].Key != "account:42" || got[0].Limit != 1 || len(got[0].Holders) != 1 || got[0].Holders[0].Task != ids[0] || got[0].Waiters != 2 {
		t.Fatalf("held are %+v", got)
	}
	lease := w.row(ids[0])
	w.do(&engine.Command{Unlock: &engine.Unlock{Env: w.env, Key: "account:42"}})
	if got := w.row(ids[0]); got.State != models.Ready || got.AttemptsUsed != 0 || len(locks()) != 0 {
		t.Errorf("the holder is %s, held are %+v", got.State, locks())
	}
	late := engine.Result{Token: lease.Token, Task: models.TaskRef{Env: w.env, ID: ids[0]}, Outcome: models.AttemptSucceeded}
	if s := w.settle(worker, late)[0]; s.Accepted || s.Code != models.LeaseLost {
		t.Errorf("the late report got %+v", s)
	}
	w.refuses(models.NotFound, &engine.Command{Unlock: &engine.Unlock{Env: w.env, Key: "account:42"}})
	if got := w.claim(worker, 4); len(got) != 1 || len(locks()) != 1 {
		t.Errorf("claimed %d, held are %+v", len(got), locks())
	}
}
