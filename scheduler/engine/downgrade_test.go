package engine_test

import (
	"strings"
	"testing"
	"time"

	"nightshift/models"
	"nightshift/scheduler/engine"
)

func lowers(b *models.Budget) { b.OnExhausted = models.DowngradeTask }

// downgrades are the tasks that were told to get another model, with the reasons.
func (w *world) downgrades() (out []models.Event) {
	for _, e := range w.store.Events() {
		if e.Name == "task.downgraded" {
			out = append(out, e.Event)
		}
	}
	return out
}

// started claims what it can and says how many run on each model.
func (w *world) started(worker models.Worker) map[string]int {
	w.t.Helper()
	got := map[string]int{}
	for _, l := range w.claim(worker, 50) {
		got[l.Model]++
	}
	return got
}

// What a budget does not cover goes to the cheapest model that everything covers, before it starts and when it is submitted.
func TestABudgetDowngradesWhatItDoesNotCover(t *testing.T) {
	w := newWorld(t, engine.Config{})
	w.three()
	worker := w.worker("one", roomy)
	id := w.budget(ofModel("small"), lowers).Budget.ID
	ids := w.submit(w.task(auto(0), cents(60)), w.task(auto(0), cents(60)), w.task(auto(0.9), cents(60)), w.task(auto(0), cents(60)))
	for i, want := range []string{"small", "small", "large", "small"} {
		w.modelIs(ids[i], want) // nothing runs yet
	}
	if got := w.started(worker); got["small"] != 1 || got["large"] != 1 {
		t.Fatalf("started: %v", got)
	}
	for _, i := range []int{1, 3} {
		choice := w.modelIs(ids[i], "middle")
		if choice.N != 2 || choice.Ranking[0].Instead != "small" || !strings.Contains(choice.Reason, "the budget of the model small a day") || !strings.Contains(choice.Reason, "does not cover small") {
			t.Errorf("kept: %+v", choice)
		}
	}
	w.rebuild()
	if got := w.started(worker); got["middle"] != 2 || len(got) != 1 {
		t.Fatalf("started: %v", got)
	}
	w.holds(id, 0, 60)
	born := w.submit(w.task(auto(0), cents(50)))[0]
	if choice := w.modelIs(born, "middle"); choice.N != 1 || choice.Ranking[0].Instead != "small" || choice.Ranking[0].Model != "middle" {
		t.Errorf("at its submit: %+v", choice)
	}
	w.modelIs(w.submit(w.task(auto(0), cents(40)))[0], "small") // that is covered
	told := w.downgrades()
	if len(told) != 3 || told[0].Task != ids[1] || told[2].Task != born || told[2].Reason == "" {
		t.Errorf("told: %+v", told)
	}
	dry := w.do(&engine.Command{Submit: &engine.Submit{Env: w.env, Dry: true, InBatch: true, Tasks: []engine.NewTask{w.task(auto(0), cents(70))}}}).Submitted.Dry
	if dry[0].Model != "middle" {
		t.Errorf("a dry run says %s", dry[0].Model)
	}
}

// What waits for a budget of money gets a cheaper model as soon as there is one, whoever decides then.
func TestWhatWaitsIsDowngradedWhenThereIsACheaperModel(t *testing.T) {
	for _, c := range []struct {
		name  string
		cheap func(w *world, id models.ID)
	}{
		{"a model is added", func(w *world, _ models.ID) { w.model("small", 1, 0.7) }},
		{"a price falls", func(w *world, _ models.ID) {
			w.model("small", 9, 0.7)
			w.model("small", 1, 0.7)
		}},
		{"the budget did not want it before", func(w *world, id models.ID) {
			w.rebudget(id, func(b *models.Budget) { b.OnExhausted = models.HoldTask })
			w.model("small", 1, 0.7)
			w.rebudget(id, lowers)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, engine.Config{})
			w.model("middle", 3, 0.85)
			worker := w.worker("one", roomy)
			id := w.budget(lowers).Budget.ID
			var tasks []engine.NewTask
			for range 3 {
				tasks = append(tasks, w.task(auto(0), tokens(100_000))) // 30 cents
			}
			w.submit(tasks...)
			if got := w.started(worker); got["middle"] != 3 {
				t.Fatalf("started: %v", got)
			}
			any, good := w.submit(w.task(auto(0), tokens(100_000)))[0], w.submit(w.task(auto(0.8), tokens(100_000)))[0]
			if got := w.started(worker); len(got) != 0 {
				t.Fatalf("ten cents are left, and %v start", got)
			}
			if got := w.detail(any, "tenant_budget"); !strings.Contains(got, "no other model that fits the task is covered, so it waits") {
				t.Error(got)
			}
			c.cheap(w, id)
			worker = w.worker("two", roomy)
			w.advance(time.Second)
			if got := w.started(worker); got["small"] != 1 || len(got) != 1 {
				t.Fatalf("started: %v", got)
			}
			w.modelIs(any, "small")
			w.modelIs(good, "middle") // the small one is not good enough: it waits
			w.holds(id, 0, 100)
		})
	}
}

func TestADowngradeKeepsToWhatWasAskedFor(t *testing.T) {
	w := newWorld(t, engine.Config{})
	w.three()
	worker := w.worker("one", roomy)
	w.budget(ofModel("middle"), lowers)
	for _, c := range []struct {
		name string
		task func(*engine.NewTask)
		want string
	}{
		{"named", named("middle"), "middle"},
		{"no other candidate", auto(0.8, "middle"), "middle"},
		{"a better one", auto(0.8), "large"},
		{"candidates", auto(0.8, "middle", "large"), "large"},
	} {
		w.submit(w.task(named("middle"), cents(100)))
		first := w.claim(worker, 1)
		id := w.submit(w.task(c.task, cents(100)))[0]
		w.modelIs(id, c.want)
		if c.want == "middle" {
			if got := w.claim(worker, 1); len(got) != 0 {
				t.Errorf("%s: it starts", c.name)
			}
			why := map[string]string{"named": "leaves no choice among models"}[c.name]
			if got := w.detail(id, "tenant_budget"); !strings.Contains(got, why) || !strings.Contains(got, "so it waits") {
				t.Errorf("%s: %s", c.name, got)
			}
		}
		w.settle(worker, paid(first[0], 0))
		for _, l := range w.claim(worker, 10) {
			w.settle(worker, paid(l, 0))
		}
	}
}

// A budget that holds is not evaded by one that downgrades.
func TestABudgetThatHoldsGoesBeforeOneThatDowngrades(t *testing.T) {
	w := newWorld(t, engine.Config{})
	w.three()
	worker := w.worker("one", roomy)
	w.budget(ofModel("small"), lowers)
	all := w.budget().Budget.ID
	w.submit(w.task(auto(0), cents(60)))
	w.claim(worker, 1)
	id := w.submit(w.task(auto(0), cents(60)))[0]
	if got := w.claim(worker, 1); len(got) != 0 {
		t.Fatal("it starts")
	}
	w.modelIs(id, "small")
	w.rebudget(all, func(b *models.Budget) { b.LimitMicro = most(2_000_000) })
	w.advance(31 * time.Second)
	w.modelIs(id, "middle")
}
