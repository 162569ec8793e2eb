package engine_test

import (
	"encoding/json"
	"testing"
	"time"

	"nightshift/models"
	"nightshift/scheduler/engine"
)

// listed starts a bulk action over tasks.
func (w *world) listed(ids []models.ID, change func(*engine.Bulk)) models.ID {
	w.t.Helper()
	b := &engine.Bulk{ID: w.id(), Env: w.env, Kind: models.BulkAction, Matched: int64(len(ids))}
	b.Fingerprint = b.ID
	change(b)
	w.store.Listed(w.env, b.ID, ids)
	w.do(&engine.Command{ID: w.id(), Bulk: b})
	return b.ID
}

// dead makes dead letters.
func (w *world) dead(worker models.Worker, n int, change ...func(*engine.NewTask)) (ids []models.ID) {
	w.t.Helper()
	for range n {
		ids = append(ids, w.submit(w.task(change...))...)
		w.settle(worker, failed(w.claim(worker, 1)[0], "invalid_input"))
		w.want(ids[len(ids)-1], models.DeadLetter)
	}
	return ids
}

func (w *world) count(ids []models.ID, state models.State) (n int) {
	w.t.Helper()
	for _, id := range ids {
		if w.state(id) == state {
			n++
		}
	}
	return n
}

func TestABulkRetryKeepsItsRateAndIsPausedAndEnded(t *testing.T) {
	w := newWorld(t, engine.Config{})
	worker := w.worker("one")
	ids := w.dead(worker, 12)
	bulk := w.listed(ids, func(b *engine.Bulk) { b.Rate = 2 })
	if n := w.count(ids, models.Ready); n != 2 {
		t.Fatalf("%d came at once, at 2 a second", n)
	}
	w.advance(2 * time.Second)
	if n := w.count(ids, models.Ready); n != 6 {
		t.Fatalf("%d after two seconds", n)
	}
	steer := func(verb string) *engine.Command {
		return &engine.Command{SteerBulk: &engine.SteerBulk{Env: w.env, ID: bulk, Verb: verb}}
	}
	w.do(steer("pause"))
	w.advance(5 * time.Second)
	w.rebuild()
	w.advance(time.Second)
	if n := w.count(ids, models.Ready); n != 6 {
		t.Fatalf("%d while it was paused", n)
	}
	w.do(steer("resume"))
	w.advance(time.Second)
	if n := w.count(ids, models.Ready); n < 8 || n > 10 {
		t.Fatalf("%d after it went on", n)
	}
	before := w.count(ids, models.Ready)
	if c := w.do(steer("cancel")).Cursor; !c.Finished || !c.Dropped {
		t.Errorf("ended as %+v", c)
	}
	w.advance(5 * time.Second)
	if n := w.count(ids, models.Ready); n != before {
		t.Errorf("%d after its end, %d before", n, before)
	}
	w.refuses(models.StateConflict, steer("resume"))
}

func TestABulkRetryPatchesPayloads(t *testing.T) {
	w := newWorld(t, engine.Config{})
	worker := w.worker("one")
	ids := w.dead(worker, 30, func(n *engine.NewTask) { n.Payload = json.RawMessage(`{"url":"a","keep":1}`) })
	w.listed(append(ids, w.submit(w.task())...), func(b *engine.Bulk) { b.Patch = json.RawMessage(`{"url":"b"}`) })
	if n := w.count(ids, models.Ready); n != 30 {
		t.Fatalf("%d of 30", n)
	}
	if o := w.store.Override(models.TaskRef{Env: w.env, ID: ids[29]}); string(o.Payload) != `{"keep":1,"url":"b"}` {
		t.Errorf("the payload is %s", o.Payload)
	}
}

func TestBulkActionsOnWhatWaits(t *testing.T) {
	w := newWorld(t, engine.Config{Slice: 2})
	worker := w.worker("one")
	ids := w.submit(w.task(), w.task(), w.task(), w.task(), w.task())
	runs := w.claim(worker, 1)[0].Row.ID
	w.listed(ids, func(b *engine.Bulk) { b.Action, b.Priority = models.ActReprioritise, 77 })
	w.listed(ids, func(b *engine.Bulk) { b.Action, b.Lane = models.ActMove, "realtime" })
	for _, id := range ids {
		if row := w.row(id); (row.Priority == 77 && row.Lane == w.engine.Board().LaneNamed(w.env, "realtime").Number) == (id == runs) {
			t.Errorf("it has priority %d in lane %d", row.Priority, row.Lane)
		}
	}
	w.listed(ids, func(b *engine.Bulk) { b.Action = models.ActCancel })
	w.want(runs, models.CancelRequested)
	if n := w.count(ids, models.Cancelled); n != 4 {
		t.Errorf("%d cancelled", n)
	}
	dead := w.dead(w.worker("two"), 3)
	w.listed(dead, func(b *engine.Bulk) { b.Action = models.ActDiscard })
	if n := w.count(dead, models.Failed); n != 3 {
		t.Errorf("%d discarded", n)
	}
}

func TestADeadLetterIsRetriedWithAnotherPayload(t *testing.T) {
	w := newWorld(t, engine.Config{})
	worker := w.worker("one")
	id := w.submit(w.task())[0]
	lease := w.claim(worker, 1)[0]
	beat := func() *engine.Command {
		return &engine.Command{Heartbeat: &engine.Heartbeat{
			Worker: worker.ID, Session: worker.Session, All: true,
			Leases: []engine.Beat{{Token: lease.Row.Token, Progress: json.RawMessage(`1`), Checkpoint: json.RawMessage(`"half"`)}},
		}}
	}
	report := failed(lease, "not_found")
	report.Checkpoint = json.RawMessage(`"more"`)
	w.turn(beat(), beat(), &engine.Command{Settle: &engine.Settle{Worker: worker.ID, Session: worker.Session, Results: []engine.Result{report}}})
	ref := models.TaskRef{Env: w.env, ID: id}
	if p, _ := w.store.Progress(ref); string(p.Progress) != `1` || string(p.Checkpoint) != `"more"` {
		t.Errorf("kept %s and %s", p.Progress, p.Checkpoint)
	}
	w.do(&engine.Command{ID: w.id(), Redrive: &engine.Redrive{Env: w.env, Task: id, Payload: json.RawMessage(`{"n":2}`), Afresh: true}})
	if p, _ := w.store.Progress(ref); string(p.Checkpoint) != `null` || string(w.store.Override(ref).Payload) != `{"n":2}` {
		t.Errorf("its next life has the checkpoint %s and the payload %s", p.Checkpoint, w.store.Override(ref).Payload)
	}
}

func TestABulkActionUnderAKeyIsStartedOnce(t *testing.T) {
	w := newWorld(t, engine.Config{})
	once := func(what byte) *engine.Once {
		return &engine.Once{Scope: "1/1 /v1/bulk-actions", Key: "k", Request: models.ID{0: what}}
	}
	start := func(what byte) (*engine.Answer, models.ID, error) {
		id := w.id()
		answer, err := w.try(&engine.Command{Bulk: &engine.Bulk{ID: id, Env: w.env, Kind: models.BulkAction, Fingerprint: id, Action: models.ActCancel, Once: once(what)}})
		return answer, id, err
	}
	first, id, err := start(1)
	w.must(err)
	if first.Replay || first.Cursor == nil || first.Cursor.ID != id {
		t.Fatalf("the first was answered %+v", first)
	}
	again, _, err := start(1)
	w.must(err)
	if !again.Replay || len(again.Made) != 1 || again.Made[0] != id {
		t.Errorf("the second was answered %+v, not that %s was made", again, id)
	}
	if _, _, err := start(2); models.CodeOf(err) != models.IdempotencyKeyReused {
		t.Errorf("another request under the key: %v", err)
	}
}
