package engine_test

import (
	"encoding/json"
	"testing"
	"time"

	"nightshift/models"
	"nightshift/scheduler/engine"
)

// A lease of a task that is made and started in one batch has its spec along, and no other lease has one: it would not be
// all that the task comes with.
func TestASpecComesAlongWhereItIsAll(t *testing.T) {
	w := newWorld(t, engine.Config{})
	worker := w.worker("one")
	payload := func(n *engine.NewTask) { n.Payload, n.Trace = json.RawMessage(`{"n":1}`), "00-trace" }
	parked := func() *engine.Command {
		claim := &engine.Command{ID: w.id(), Claim: &engine.Claim{Worker: worker.ID, Session: worker.Session, Most: 1, Until: w.now.Add(30 * time.Second)}}
		w.turn(claim)
		return claim
	}
	got := func(claim *engine.Command) engine.Lease {
		t.Helper()
		r := w.late[claim]
		if r.Answer == nil || len(r.Answer.Claimed.Leases) != 1 {
			t.Fatalf("the parked claim got %+v", r)
		}
		return r.Answer.Claimed.Leases[0]
	}

	claim := parked()
	first := w.submit(w.task(payload))[0]
	lease := got(claim)
	if s := lease.Spec; s == nil || s.ID != first || string(s.Payload) != `{"n":1}` || string(s.Input) != `{}` || s.Trace != "00-trace" {
		t.Errorf("with the lease came %+v", s)
	}
	w.settle(worker, ok(lease))

	for name, change := range map[string]func(*engine.NewTask){ // any order: each has a claim of its own
		"a dependency": func(n *engine.NewTask) { n.DependsOn = []engine.Dependency{{Task: first}} },
		"a checkpoint": func(n *engine.NewTask) { n.Checkpoint = json.RawMessage(`{"at":3}`) },
	} {
		claim := parked()
		w.submit(w.task(payload, change))
		if lease = got(claim); lease.Spec != nil {
			t.Errorf("of a task with %s came %+v alone", name, lease.Spec)
		}
		w.settle(worker, ok(lease))
	}

	claim = parked()
	task := w.task(payload)
	submit := &engine.Command{ID: w.id(), Submit: &engine.Submit{Env: w.env, Tasks: []engine.NewTask{task}}}
	edit := &engine.Command{ID: w.id(), Edit: &engine.Edit{Env: w.env, Task: task.ID, Seen: w.now, Input: json.RawMessage(`{"description":"new"}`)}}
	for _, r := range w.turn(submit, edit) {
		w.must(r.Err)
	}
	if lease = got(claim); lease.Spec != nil {
		t.Errorf("of a task that the same batch has edited came %+v", lease.Spec)
	}
	w.settle(worker, ok(lease))

	w.submit(w.task(payload))
	if lease = w.claim(worker, 1)[0]; lease.Spec != nil {
		t.Errorf("of a task that had waited came %+v", lease.Spec)
	}
	text, err := json.Marshal(engine.Lease{Spec: &models.Spec{Trace: "00-trace"}})
	w.must(err)
	if plain, err := json.Marshal(engine.Lease{}); err != nil || string(plain) != string(text) {
		t.Errorf("sent on as %s", text)
	}
}
