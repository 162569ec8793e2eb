package engine_test

import (
	"encoding/json"
	"slices"
	"strconv"
	"testing"
	"time"

	"nightshift/models"
	"nightshift/scheduler/engine"
)

// order lets one slot work through everything and answers the keys as they started.
func (w *world) order(worker models.Worker, each func(engine.Lease)) (keys []string) {
	for {
		leases := w.claim(worker, 1)
		if len(leases) == 0 {
			return keys
		}
		keys = append(keys, leases[0].Row.Key)
		if each != nil {
			each(leases[0])
		}
		w.settle(worker, ok(leases[0]))
	}
}

// A workflow that is to finish first has its work done before that of the next, whatever is left of their critical paths;
// inside it the longest rest of the path still goes first. Without being asked to, the critical paths decide.
func TestAWorkflowThatIsToFinishFirstDoes(t *testing.T) {
	for _, asked := range []bool{true, false} {
		t.Run(strconv.FormatBool(asked), func(t *testing.T) {
			w := newWorld(t, engine.Config{})
			worker := w.worker("one", func(m *models.Worker) { m.Slots = 1 })
			ahead := map[string]int64{"a": 3000, "b": 1000, "c": 2000, "x": 1_800_000, "y": 900_000}
			path := func(n *engine.NewTask) { n.AheadMS = ahead[n.Key] }
			id, ids := w.flow(func(f *engine.NewWorkflow) {
				if asked {
					f.Input = json.RawMessage(`{"labels":{"n":"1"},"finish_first":true}`)
				}
			}, path, "a", "b:a", "c:a")
			w.now = w.now.Add(2 * time.Second)
			w.flow(nil, path, "x", "y:x")
			w.now = w.now.Add(2 * time.Second)
			w.rebuild() // what was asked is known from the row
			got := w.order(worker, func(l engine.Lease) {
				if l.Row.Key == "b" { // it grows while it runs
					_, err := w.try(&engine.Command{Submit: &engine.Submit{Env: w.env, Into: id, Tasks: w.members(path, ids, "d")}})
					w.must(err)
				}
			})
			want := []string{"x", "y", "a", "c", "b", "d"}
			if asked {
				want = []string{"a", "c", "b", "d", "x", "y"}
			}
			if !slices.Equal(got, want) {
				t.Errorf("finish first: %v; they started as %v, not as %v", asked, got, want)
			}
		})
	}
}

// To finish first is worth an hour of waiting, no more: what is more important than that by its priority goes before.
func TestFinishingFirstIsWorthAnHour(t *testing.T) {
	w := newWorld(t, engine.Config{})
	worker := w.worker("one", func(m *models.Worker) { m.Slots = 1 })
	w.flow(func(f *engine.NewWorkflow) { f.Input = json.RawMessage(`{"finish_first":true}`) }, nil, "a", "b:a")
	w.flow(nil, func(n *engine.NewTask) { n.Priority = 100 }, "x")                       // fifty points: 50 minutes
	w.flow(nil, func(n *engine.NewTask) { n.Priority, n.AheadMS = 100, 3_600_000 }, "y") // and an hour of path
	if got, want := w.order(worker, nil), []string{"y", "a", "b", "x"}; !slices.Equal(got, want) {
		t.Errorf("they started as %v, not as %v", got, want)
	}
}

// A child that names no priority is as important as its parent, and counts from the beginning of a workflow that is to
// finish first.
func TestChildrenAreAsImportantAsTheirParent(t *testing.T) {
	w := newWorld(t, engine.Config{})
	worker := w.worker("one", func(m *models.Worker) { m.Slots = 1 })
	w.flow(func(f *engine.NewWorkflow) { f.Input = json.RawMessage(`{"finish_first":true}`) }, func(n *engine.NewTask) { n.Priority = 70 }, "a", "b:a")
	w.now = w.now.Add(time.Minute)
	w.flow(nil, func(n *engine.NewTask) { n.Priority, n.AheadMS = 70, 1_800_000 }, "x")
	parent := w.claim(worker, 1)[0]
	child := func(key string, priority int16) engine.NewTask {
		return w.task(func(n *engine.NewTask) { n.Key, n.Priority = key, priority })
	}
	spawned := w.do(&engine.Command{Spawn: &engine.Spawn{
		Env: w.env, Task: parent.Row.ID, Token: parent.Row.Token, Tasks: []engine.NewTask{child("own", 60), child("inherits", engine.ParentsPriority)},
	}}).Submitted.Tasks
	if a, b := spawned[0].Row.Priority, spawned[1].Row.Priority; a != 60 || b != 70 {
		t.Errorf("the children have the priorities %d and %d", a, b)
	}
	w.settle(worker, ok(parent))
	if got, want := w.order(worker, nil), []string{"b", "inherits", "own", "x"}; !slices.Equal(got, want) {
		t.Errorf("they started as %v, not as %v", got, want)
	}
}
