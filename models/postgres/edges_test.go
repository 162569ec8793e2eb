package postgres_test

import (
	"reflect"
	"testing"
	"time"

	"nightshift/models"
)

// fan is an ended task and as many that wait for it alone.
func (w *world) fan(n int) (ended models.Task, waiting map[models.ID]bool) {
	head := w.started(w.ready())
	head.Flags = models.HasDependants
	plan, waiting := &models.Plan{Tasks: []models.Task{head}}, map[models.ID]bool{}
	for range n {
		task := w.ready()
		task.State, task.Remaining, task.ReadyAt = models.Pending, 1, 0
		waiting[task.ID] = true
		plan.Tasks = append(plan.Tasks, task)
		plan.Edges = append(plan.Edges, models.Edge{Env: env, From: head.ID, To: task.ID})
	}
	for len(plan.Tasks) > 0 { // in parts that fit a batch
		m := min(2000, len(plan.Tasks))
		part := &models.Plan{Tasks: plan.Tasks[:m]}
		plan.Tasks = plan.Tasks[m:]
		w.apply(part)
	}
	for len(plan.Edges) > 0 {
		m := min(2000, len(plan.Edges))
		w.apply(&models.Plan{Edges: plan.Edges[:m]})
		plan.Edges = plan.Edges[m:]
	}
	ended = w.ended(head, models.Succeeded)
	w.apply(&models.Plan{Changes: []models.Change{{From: models.Running, Token: head.Token, After: ended}}})
	return ended, waiting
}

func TestEdgesMoveInSlices(t *testing.T) {
	w := newWorld(t)
	a, ofA := w.fan(7)
	b, ofB := w.fan(3)
	c, _ := w.fan(0)
	ends := []models.End{{Env: env, Task: a.ID, State: models.Succeeded}, {Env: env, Task: b.ID, State: models.Succeeded}, {Env: env, Task: c.ID, State: models.Succeeded}}
	freed := func(e *models.Effects, of map[models.ID]bool) (n int) {
		for _, task := range e.Freed {
			if of[task.ID] {
				delete(of, task.ID)
				n++
			}
		}
		return n
	}
	first := w.apply(&models.Plan{Ends: ends, MostEdges: 4})
	if n := freed(first, ofA); n != 4 || len(first.Freed) != 4 || len(first.Unfired) != 2 {
		t.Fatalf("%d of a, %d in all, left %+v", n, len(first.Freed), first.Unfired)
	}
	if got := w.load(1, 1).Unfired; !reflect.DeepEqual(got, first.Unfired) {
		t.Errorf("a rebuild goes on with %+v, not %+v", got, first.Unfired)
	}
	second := w.apply(&models.Plan{Ends: first.Unfired, MostEdges: 4})
	if nA, nB := freed(second, ofA), freed(second, ofB); nA+nB != 4 || len(second.Unfired) == 0 {
		t.Fatalf("%d of a, %d of b, left %+v", nA, nB, second.Unfired)
	}
	third := w.apply(&models.Plan{Ends: second.Unfired, MostEdges: 4})
	freed(third, ofA)
	freed(third, ofB)
	if len(ofA)+len(ofB) != 0 || len(third.Freed) != 2 || len(third.Unfired) != 0 || len(w.load(1, 1).Unfired) != 0 {
		t.Errorf("never freed: %v and %v; left %+v", ofA, ofB, third.Unfired)
	}
	if again := w.apply(&models.Plan{Ends: ends, MostEdges: 4}); len(again.Freed)+len(again.Unfired) != 0 {
		t.Errorf("edges fired twice: %+v", again)
	}
}

// TestAWideFanOut prints how long batches take that move the 50,000 edges of one task.
func TestAWideFanOut(t *testing.T) {
	if !*long {
		t.Skip("needs -long")
	}
	w := newWorld(t)
	const width = 50_000
	head, _ := w.fan(width)
	longest, batches, freed := time.Duration(0), 0, 0
	for ends := []models.End{{Env: env, Task: head.ID, State: models.Succeeded}}; len(ends) > 0; batches++ {
		began := time.Now()
		effects := w.apply(&models.Plan{Ends: ends, MostEdges: 1000})
		longest = max(longest, time.Since(began))
		ends, freed = effects.Unfired, freed+len(effects.Freed)
	}
	if freed != width {
		t.Errorf("%d tasks were freed", freed)
	}
	t.Logf("%d batches, the longest %s", batches, longest.Round(time.Millisecond))
	head, _ = w.fan(width)
	began := time.Now()
	_, err := w.store.Apply(t.Context(), w.plan(&models.Plan{Ends: []models.End{{Env: env, Task: head.ID, State: models.Succeeded}}}))
	t.Logf("all at once: %s, %v", time.Since(began).Round(time.Millisecond), err)
}
