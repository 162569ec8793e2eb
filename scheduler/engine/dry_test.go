package engine_test

import (
	"testing"

	"nightshift/models"
	"nightshift/scheduler/engine"
)

// What tasks of a class reported of their cost tells what the next will cost, after a rebuild too.
func TestDryRunKnowsWhatItsLikeCost(t *testing.T) {
	w := newWorld(t, engine.Config{})
	cost := func() *int64 {
		t.Helper()
		a := w.do(&engine.Command{Submit: &engine.Submit{Env: w.env, Dry: true, Single: true, InBatch: true, Tasks: []engine.NewTask{w.task()}}})
		return a.Submitted.Dry[0].EstimatedCost
	}
	if got := cost(); got != nil {
		t.Fatalf("nobody ran yet, and it would cost %d", *got)
	}
	w.do(&engine.Command{Submit: &engine.Submit{Env: w.env, Tasks: []engine.NewTask{w.task(), w.task(), w.task()}}})
	box := w.worker("box", func(m *models.Worker) { m.Slots = 4 })
	for _, l := range w.claim(box, 4) {
		r := ok(l)
		r.Usage = []byte(`{"tokens_in":900,"tokens_out":100,"cost_usd":0.25}`)
		w.settle(box, r)
	}
	for range 2 {
		if got := cost(); got == nil || *got < 250_000 || *got > 320_000 {
			t.Fatalf("three tasks cost a quarter of a dollar each, the next would cost %v", got)
		}
		w.rebuild()
	}
}
