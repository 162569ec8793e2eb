package engine_test

import (
	"testing"
	"time"

	"nightshift/models"
	"nightshift/scheduler/engine"
)

// What tenants have used is remembered over a rebuild, and counts for what is on offer already.
func TestSharesOutliveARebuild(t *testing.T) {
	w := newWorld(t, engine.Config{})
	other := w.do(&engine.Command{Configure: &engine.Configure{New: true, Action: "tenant.create", Tenant: &models.Tenant{ID: w.id(), Slug: "birch", Name: "Birch", Weight: 1, Timezone: "UTC"}}})
	envs := []int32{w.env, 0}
	for _, env := range w.engine.Board().Envs {
		if env.Tenant == other.Tenant.Number {
			envs[1] = env.Env
		}
	}
	for _, env := range envs {
		tasks := make([]engine.NewTask, 40)
		for i := range tasks {
			tasks[i] = w.task()
		}
		w.do(&engine.Command{Submit: &engine.Submit{Env: env, Tasks: tasks}})
	}
	box := w.worker("box", func(m *models.Worker) { m.Slots = 4 })
	got := map[int32]int{}
	for range 10 {
		for _, l := range w.claim(box, 4) {
			got[l.Row.Env]++
			w.now += models.Instant(time.Second / time.Microsecond)
			w.settle(box, ok(l))
		}
		w.rebuild()
	}
	if a, b := got[envs[0]], got[envs[1]]; a+b != 40 || a < 18 || b < 18 {
		t.Fatalf("of 40 starts one tenant got %d, the other %d", a, b)
	}
}
