package engine_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"nightshift/models"
	"nightshift/models/storetest"
	"nightshift/scheduler/engine"
)

// drawKeyed is a task with keys, perhaps in order, perhaps under a rate.
func drawKeyed(r *rapid.T, w *world) engine.NewTask {
	var all []models.TaskKey
	for _, n := range rapid.SliceOfNDistinct(rapid.IntRange(0, 3), 1, 3, rapid.ID).Draw(r, "keys") {
		all = append(all, models.TaskKey{Name: fmt.Sprintf("k%d", n), Limit: rapid.Int32Range(1, 2).Draw(r, "limit")})
	}
	ordered := rapid.IntRange(0, 2).Draw(r, "ordered") == 0
	if rapid.IntRange(0, 2).Draw(r, "rated") == 0 {
		all = append(all, models.TaskKey{Name: fmt.Sprintf("r%d", rapid.IntRange(0, 1).Draw(r, "rate"))})
	}
	return w.task(in(rapid.SampledFrom([]string{"realtime", "io", "batch"}).Draw(r, "lane")), func(n *engine.NewTask) {
		n.LimitKey, n.KeyLimit, n.MoreKeys = models.PackKeys(all)
		n.Ordered, n.Priority, n.MaxAttempts = ordered, rapid.Int16Range(0, 100).Draw(r, "priority"), 2
	})
}

// TestKeysHoldWhateverHappens: after every turn of random commands, rebuilds among them, no key has more holders than its
// limit, no rate let too many start, nothing ordered passed what stands before it, and nothing is parked behind an open gate
// (the board's check says so). When nothing more comes, everything ends.
func TestKeysHoldWhateverHappens(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		w := worldOn(t, engine.Config{Heads: 2, MostEntries: 20, Slice: 3}, storetest.Lone)
		watch := storetest.NewKeyWatch()
		w.saw = func(p *models.Plan) {
			if err := watch.See(p); err != nil {
				r.Fatalf("%v", err)
			}
		}
		worker := w.worker("one", func(w *models.Worker) { w.Slots = 6 })
		w.rate("r0", 2, 7, 0)
		w.rate("r1", 3, 20, 1)
		var leases []engine.Lease
		for range rapid.IntRange(5, 30).Draw(r, "steps") {
			switch rapid.IntRange(0, 9).Draw(r, "what") {
			case 0, 1, 2:
				var body []engine.NewTask
				for range rapid.IntRange(1, 5).Draw(r, "tasks") {
					body = append(body, drawKeyed(r, w))
				}
				w.submit(body...)
			case 3, 4, 5:
				leases = append(leases, w.claim(worker, rapid.Int32Range(1, 4).Draw(r, "most"))...)
			case 6, 7:
				if len(leases) > 0 {
					i := rapid.IntRange(0, len(leases)-1).Draw(r, "which")
					w.settle(worker, rapid.SampledFrom([]engine.Result{ok(leases[i]), failed(leases[i], "internal"), released(leases[i])}).Draw(r, "end"))
					leases = slices.Delete(leases, i, i+1)
				}
			case 8:
				w.wait(worker, rapid.SampledFrom([]int{1, 5, 40}).Draw(r, "seconds"))
			case 9:
				w.rebuild()
			}
		}
		w.drain(r, worker, leases)
	})
}

func released(l engine.Lease) engine.Result {
	return engine.Result{Token: l.Row.Token, Task: models.TaskRef{Env: l.Row.Env, ID: l.Row.ID}, Outcome: models.AttemptReleased}
}

// drain lets everything end, and gives dead letters up.
func (w *world) drain(r *rapid.T, worker models.Worker, leases []engine.Lease) {
	for range 400 {
		for _, l := range append(leases, w.claim(worker, 9)...) {
			if w.row(l.Row.ID).Token == l.Row.Token {
				w.settle(worker, ok(l))
			}
		}
		leases = nil
		left := 0
		for _, task := range w.store.Tasks() {
			if task.State == models.DeadLetter {
				w.do(&engine.Command{Discard: &engine.Discard{Env: w.env, Task: task.ID, Reason: "given up"}})
			} else if !task.State.Final() {
				left++
			}
		}
		if left == 0 {
			return
		}
		w.wait(worker, 1)
	}
	for _, task := range w.store.Tasks() {
		if !task.State.Final() {
			r.Fatalf("%s with the gate %q never ends: %+v", task.State, task.Gate, w.explained(task.ID))
		}
	}
}

// TestNoKeyStarves: on every key work waits all the time, of lengths of its own, so that they seldom free together. Tasks of
// several keys start within their bound and the time that the holders of their keys need, whatever the keys and lengths.
func TestNoKeyStarves(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		w := worldOn(t, engine.Config{}, storetest.Lone)
		worker := w.worker("one", func(w *models.Worker) { w.Slots = 20 })
		fast := in("realtime")
		streams := rapid.SliceOfN(rapid.IntRange(1, 4), 2, 4).Draw(r, "lengths")
		var victims []models.ID
		for range rapid.IntRange(1, 3).Draw(r, "victims") {
			var names []string
			for _, n := range rapid.SliceOfNDistinct(rapid.IntRange(0, len(streams)-1), 2, len(streams), rapid.ID).Draw(r, "needs") {
				names = append(names, fmt.Sprintf("k%d", n))
			}
			victims = append(victims, w.submit(w.task(keys(names...), fast, func(n *engine.NewTask) { n.RunAt = w.now.Add(2 * time.Second) }))[0])
		}
		type holder struct {
			lease engine.Lease
			until int
		}
		var running []holder
		bound := 2 + 30 + 3*len(victims)*4*len(streams)
		for second := range bound {
			for n := range streams { // one more waits behind the one that runs
				w.submit(w.task(keys(fmt.Sprintf("k%d", n)), fast))
			}
			running = slices.DeleteFunc(running, func(h holder) bool {
				if h.until <= second {
					w.settle(worker, ok(h.lease))
				}
				return h.until <= second
			})
			for _, l := range w.claim(worker, 20) {
				n := 0
				if _, err := fmt.Sscanf(l.Row.LimitKey, "k%d", &n); err != nil {
					r.Fatal(err)
				}
				running = append(running, holder{l, second + streams[n]})
			}
			w.wait(worker, 1)
			if !slices.ContainsFunc(victims, func(id models.ID) bool { return w.row(id).Attempt == 0 }) {
				return
			}
		}
		r.Fatalf("after %d s one of %d tasks of several keys has not started", bound, len(victims))
	})
}
