package engine_test

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"nightshift/models"
	"nightshift/scheduler/engine"
)

// However much comes that is due soon, a line whose head is past its ageing bound lets it go at least every second time: a
// task waits for twice as many starts as stand before it by rank, and no longer.
func TestUrgentTasksPassAnAgedOneAtMostEverySecondTime(test *testing.T) {
	passes := 0
	rapid.Check(test, func(t *rapid.T) {
		c := newChaos(test, t, engine.Config{})
		aged := rapid.IntRange(1, 6).Draw(t, "aged")
		waiting := map[models.ID]bool{}
		for range aged {
			task := c.task(func(n *engine.NewTask) { n.Priority = rapid.Int16Range(50, 100).Draw(t, "priority") })
			waiting[task.ID] = true
			c.step(&engine.Command{Submit: &engine.Submit{Env: c.env, Tasks: []engine.NewTask{task}}})
		}
		c.now = c.now.Add(agedAfter[models.Batch] + time.Minute)
		w := c.worker("alone", func(m *models.Worker) { m.Slots = 1 })
		c.workers = append(c.workers, w)
		starts := 0
		for ; len(waiting) > 0; starts++ {
			if starts > 2*aged {
				t.Fatalf("%d starts, and %d of %d tasks that are past the bound still wait", starts, len(waiting), aged)
			}
			for range rapid.IntRange(1, 3).Draw(t, "urgent") {
				due := c.task(func(n *engine.NewTask) {
					n.EstimateMS, n.Deadline = 1000, c.now.Add(time.Duration(rapid.IntRange(5, 300).Draw(t, "due"))*time.Second)
				})
				c.step(&engine.Command{Submit: &engine.Submit{Env: c.env, Tasks: []engine.NewTask{due}}})
			}
			c.step(&engine.Command{Claim: &engine.Claim{Worker: w.ID, Session: w.Session, Most: 1}})
			if len(c.held) != 1 {
				t.Fatalf("%d tasks started", len(c.held))
			}
			for token, h := range c.held { // the only one
				if !waiting[h.lease.Row.ID] {
					passes++
				}
				delete(waiting, h.lease.Row.ID)
				delete(c.held, token)
				c.now = c.now.Add(time.Second)
				c.reports(h, ok(h.lease))
			}
		}
	})
	if passes == 0 {
		test.Error("nothing urgent ever passed: the test shows nothing")
	}
}

// Between two starts of a tenant with work, the others start no more than their weights allow.
func TestNoTenantWaitsLongerThanTheWeightsAllow(test *testing.T) {
	rapid.Check(test, func(t *rapid.T) {
		w := drawnWorld(test, t, engine.Config{Heads: 1, MostEntries: rapid.SampledFrom([]int{0, 12}).Draw(t, "entries")})
		weights := rapid.SliceOfN(rapid.Float64Range(0.5, 8), 2, 5).Draw(t, "weights")
		sum, rounds := 0.0, 30
		for i, weight := range weights {
			sum += weight
			w.do(&engine.Command{Configure: &engine.Configure{New: true, Tenant: &models.Tenant{ID: w.id(), Slug: string(rune('b' + i)), Weight: weight, Timezone: "UTC"}}})
			tasks := make([]engine.NewTask, rounds)
			for j := range tasks {
				tasks[j] = w.task(func(n *engine.NewTask) {
					n.Priority, n.Class.Type = rapid.Int16Range(0, 100).Draw(t, "priority"), rapid.SampledFrom([]string{"a", "b"}).Draw(t, "type")
				})
			}
			w.do(&engine.Command{Submit: &engine.Submit{Env: w.env + 1 + int32(i), Tasks: tasks}})
		}
		worker := w.worker("one", func(m *models.Worker) { m.Slots = 1 })
		last := make([]int, len(weights))
		for turn := range rounds {
			lease := w.claim(worker, 1)[0]
			last[lease.Row.Env-w.env-1] = turn
			for i, weight := range weights {
				// Start-time fair queueing: all that the others may start before its next turn comes, and one task of each.
				if most := math.Ceil((sum-weight)/weight) + float64(len(weights)); float64(turn-last[i]) > most {
					t.Fatalf("tenant %d of weight %.2f (of %.2f) has waited %d starts, at most %.0f are fair", i, weight, sum, turn-last[i], most)
				}
			}
			w.now = w.now.Add(time.Second)
			w.settle(worker, ok(lease))
		}
	})
}
