package engine_test

import (
	"encoding/json"
	"testing"

	"nightshift/models"
	"nightshift/scheduler/engine"
)

func TestAWatermarkMovesWithASuccessAlone(t *testing.T) {
	w := newWorld(t, engine.Config{})
	worker := w.worker("one")
	marked := func(n *engine.NewTask) { n.LimitKey, n.KeyLimit = engine.MarkKey+"docs", 1 }
	ids := w.submit(w.task(marked), w.task(marked))
	mark := func() models.Watermark {
		ref := models.IdemRef{Env: w.env, Key: "docs"}
		facts, err := w.store.Facts(w.ctx, &models.Need{Watermarks: []models.IdemRef{ref}})
		w.must(err)
		return facts.Watermarks[ref]
	}
	move := func(l engine.Lease, value string, version int64) engine.Settled {
		r := ok(l)
		r.Mark = &engine.MarkMove{Value: json.RawMessage(value), Version: &version}
		return w.settle(worker, r)[0]
	}
	leases := w.claim(worker, 2)
	if len(leases) != 1 {
		t.Fatalf("%d of one watermark run at once", len(leases))
	}
	if s := move(leases[0], `"monday"`, 0); !s.Accepted || s.Code != "" || string(mark().Value) != `"monday"` || mark().Version != 1 {
		t.Fatalf("moved to %+v: %+v", mark(), s)
	}
	zero := int64(0)
	w.refuses(models.Stale, &engine.Command{ID: w.id(), Mark: &engine.Mark{Env: w.env, Name: "docs", Value: json.RawMessage(`1`), Version: &zero}})
	w.do(&engine.Command{ID: w.id(), Mark: &engine.Mark{Env: w.env, Name: "docs", Value: json.RawMessage(`"tuesday"`)}})
	if s := move(w.claim(worker, 1)[0], `"wrong"`, 1); !s.Accepted || s.Code != models.StateConflict || string(mark().Value) != `"tuesday"` || mark().Version != 2 {
		t.Fatalf("with an old version moved to %+v: %+v", mark(), s)
	}
	w.want(ids[1], models.RetryWait)
	plain := w.submit(w.task())[0]
	if s := move(w.claim(worker, 1)[0], `1`, 0); s.Code != models.StateConflict || w.state(plain) != models.RetryWait {
		t.Errorf("a task without one moved it: %+v", s)
	}
}
