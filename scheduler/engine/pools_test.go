package engine_test

import (
	"testing"
	"time"

	"nightshift/models"
	"nightshift/models/storetest"
	"nightshift/scheduler/engine"
)

// A tenant that had nothing to do in a pool earns nothing there, however much it has to do in another all the while.
func TestWorkInAnotherPoolEarnsNothingInThisOne(t *testing.T) {
	w := worldOn(t, engine.Config{}, storetest.Lone)
	w.do(&engine.Command{Configure: &engine.Configure{New: true, Tenant: &models.Tenant{ID: w.id(), Slug: "birch", Name: "Birch", Weight: 1, Timezone: "UTC"}}})
	birch := w.env + 1
	cpu := w.worker("cpu", func(m *models.Worker) { m.Slots, m.LeaseSeconds = 1, 300 })
	gpu := w.worker("gpu", func(m *models.Worker) {
		m.Pool, m.Slots, m.LeaseSeconds, m.TaskTypes, m.GPUs = "gpu", 1, 300, []string{"train"}, []models.GPUCard{{VRAMMB: 24_000}}
	})
	more := func(env int32, n int) {
		var tasks []engine.NewTask
		for range n {
			tasks = append(tasks, w.task(func(t *engine.NewTask) { t.EstimateMS = 10_000 }))
		}
		w.do(&engine.Command{Submit: &engine.Submit{Env: env, Tasks: tasks, InBatch: true}})
	}
	run := func() int32 {
		lease := w.claim(cpu, 1)[0]
		w.now = w.now.Add(10 * time.Second)
		w.settle(cpu, ok(lease))
		return lease.Row.Env
	}
	train := func(n *engine.NewTask) { n.Class = models.Class{Type: "train", GPU: 1} }
	w.submit(w.task(train), w.task(train), w.task(train)) // acorn always has work for the cards
	w.claim(gpu, 1)
	more(w.env, 1)
	more(birch, 50)
	for range 30 {
		run()
	}
	more(w.env, 20)
	started := map[int32]int{}
	for range 12 {
		started[run()]++
	}
	if n := started[w.env]; n < 5 || n > 7 {
		t.Errorf("of twelve starts acorn had %d, half are its share", n)
	}
}

// Of kinds with one precedence each gets its weight of the time of the slots, however long its tasks are.
func TestKindsThatGoAlikeShareByWeight(t *testing.T) {
	w := worldOn(t, engine.Config{}, storetest.Lone)
	for name, weight := range map[models.KindName]float64{models.Compute: 2, models.Batch: 1} {
		kind := w.engine.Board().Kinds[name]
		kind.Precedence, kind.Weight, kind.MinShare, kind.Elastic = 30, weight, 0, false
		w.configure(&engine.Configure{Kind: &kind, Action: "kind.update"})
	}
	worker := w.worker("one", func(m *models.Worker) { m.Slots, m.LeaseSeconds = 1, 300 })
	long, short := map[string]time.Duration{"compute": 60 * time.Second, "batch": 5 * time.Second}, []engine.NewTask{}
	for lane, n := range map[string]int{"compute": 40, "batch": 200} {
		for range n {
			short = append(short, w.task(in(lane), func(t *engine.NewTask) { t.EstimateMS = long[lane].Milliseconds() }))
		}
	}
	w.submit(short...)
	used := map[string]time.Duration{}
	for used["compute"]+used["batch"] < 20*time.Minute {
		lease := w.claim(worker, 1)[0]
		lane := w.engine.Board().Lanes[lease.Row.Lane].Name
		w.now = w.now.Add(long[lane])
		used[lane] += long[lane]
		w.settle(worker, ok(lease))
	}
	if ratio := used["compute"].Seconds() / used["batch"].Seconds(); ratio < 1.7 || ratio > 2.4 {
		t.Errorf("compute got %s, batch %s: twice as much is its weight", used["compute"], used["batch"])
	}
}
