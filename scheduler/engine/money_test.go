package engine_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"nightshift/models"
	"nightshift/scheduler/engine"
)

// tokens is how many a task says it needs.
func tokens(n int64) func(*engine.NewTask) { return func(t *engine.NewTask) { t.Tokens = n } }

// usedOf reports a task done, by whichever model.
func usedOf(l engine.Lease, model string, cents int64) engine.Result {
	r := paid(l, cents)
	r.Usage = json.RawMessage(fmt.Sprintf(`{"model": %q, "cost_usd": %v, "tokens_in": 7}`, model, float64(cents)/100))
	return r
}

func ofModel(name string) func(*models.Budget) {
	return func(b *models.Budget) { b.Scope, b.Name = models.ModelScope, name }
}

// Before any cost was reported a task is expected to cost its tokens at the price of its model.
func TestTokensTimesPriceIsExpectedUntilACostIsKnown(t *testing.T) {
	w := newWorld(t, engine.Config{})
	w.model("small", 1, 0.7)
	worker := w.worker("one", roomy)
	id := w.budget().Budget.ID
	var tasks []engine.NewTask
	for range 12 {
		tasks = append(tasks, w.task(ofSmall, tokens(100_000)))
	}
	ids := w.submit(tasks...)
	leases := w.claim(worker, 20)
	if len(leases) != 10 {
		t.Fatalf("%d start of what costs ten cents each", len(leases))
	}
	w.holds(id, 0, 100)
	if got := w.detail(ids[11], "tenant_budget"); !strings.Contains(got, "expected to cost $0.10") {
		t.Error(got)
	}
	w.model("small", 2, 0.7)
	w.holds(id, 0, 200)
	w.rebuild()
	w.holds(id, 0, 200)
	w.settle(worker, paid(leases[0], 3)) // now it is known
	w.holds(id, 3, 27)
	w.rebuild()
	w.holds(id, 3, 27)
	if more := w.claim(worker, 20); len(more) != 2 {
		t.Fatalf("%d start", len(more))
	}
}

// A report that names tokens and no cost is taken at the price of the model that was used: the budget fills, and what comes next is
// expected to cost as much.
func TestTokensWithoutACostAreTakenAtThePriceOfTheModel(t *testing.T) {
	w := newWorld(t, engine.Config{})
	w.model("small", 1, 0.7)
	worker := w.worker("one", roomy)
	id := w.budget().Budget.ID
	w.submit(w.task(ofSmall))
	lease := w.claim(worker, 1)[0]
	w.holds(id, 0, 5) // nobody knows anything: a twentieth
	r := ok(lease)
	r.Usage = json.RawMessage(`{"tokens_in": 150000, "tokens_out": 50000}`)
	w.settle(worker, r)
	w.holds(id, 20, 0)
	for range 6 {
		w.submit(w.task(ofSmall))
	}
	if more := w.claim(worker, 20); len(more) != 4 {
		t.Fatalf("%d start of what takes 200,000 tokens", len(more))
	}
	w.holds(id, 20, 80)
	w.unmodel("small")
	w.holds(id, 20, 80) // what it cost is known
	w.rebuild()
	w.holds(id, 20, 80)
}

// The price is that of the hour, of cached tokens and of work that nobody waits for; a report's own word goes before it.
func TestWhatTokensCostIsThePriceOfTheirKindAndHour(t *testing.T) {
	for usage, want := range map[string]int64{ // any order: each has a world of its own
		`{"tokens_in": 100000}`:                                                          10,
		`{"tokens_out": 100000}`:                                                         20,
		`{"tokens_in": 100000, "tokens_cached": 50000}`:                                  6,
		`{"tokens_in": 100000, "tokens_cached": 9000000}`:                                2,
		`{"tokens_in": 100000, "cost_usd": 0.03}`:                                        3,
		`{"tokens_in": 100000, "cost_usd": 0}`:                                           0,
		`{"tokens_in": 100000, "cost_usd": null, "model": "other"}`:                      30,
		`{"tokens_in": 100000, "model": "what its provider calls it", "cost_usd": null}`: 10,
		`{"cpu_seconds": 3}`:                                                             0,
		``:                                                                               0,
	} {
		t.Run(usage, func(t *testing.T) {
			w := newWorld(t, engine.Config{})
			cached := int64(200_000)
			w.model("small", 1, 0.7, func(m *models.Model) { m.OutputMicro, m.CachedMicro = 2_000_000, &cached })
			w.model("other", 3, 0.7)
			worker := w.worker("one", roomy)
			id := w.budget().Budget.ID
			w.submit(w.task(ofSmall))
			r := ok(w.claim(worker, 1)[0])
			r.Usage = json.RawMessage(usage)
			w.settle(worker, r)
			if f := w.figures(id); f.Spent.Micro != want*10_000 {
				t.Errorf("%s cost %s, not %d cents", usage, engine.Dollars(f.Spent.Micro), want)
			}
		})
	}
	w := newWorld(t, engine.Config{})
	w.model("small", 1, 0.7, func(m *models.Model) {
		m.OffPeak = []models.OffPeak{{Window: models.Window{Cron: "* * * * *", DurationSeconds: 3600, Timezone: "UTC"}, Factor: 0.5}}
	})
	worker := w.worker("one", roomy)
	id := w.budget().Budget.ID
	w.submit(w.task(ofSmall))
	r := ok(w.claim(worker, 1)[0])
	r.Usage = json.RawMessage(`{"tokens_in": 100000}`)
	w.settle(worker, r)
	w.holds(id, 5, 0)
}

// A late report without a cost takes the place of what was presumed, at the price of its tokens.
func TestALateReportOfTokensCostsWhatTheModelDoes(t *testing.T) {
	w := newWorld(t, engine.Config{})
	w.model("small", 1, 0.7)
	worker := w.worker("one", roomy)
	id := w.budget().Budget.ID
	w.submit(w.task(ofSmall, cents(40)))
	lease := w.claim(worker, 1)[0]
	w.advance(32 * time.Second)
	w.holds(id, 40, 0)
	late := ok(lease)
	late.Usage = json.RawMessage(`{"tokens_in": 100000, "tokens_out": 50000}`)
	for range 2 {
		w.settle(worker, late)
		w.holds(id, 15, 0)
	}
	w.rebuild()
	w.holds(id, 15, 0)
}

// A reject refuses a new kind of task by the price of its tokens as well.
func TestABudgetRefusesByThePriceOfTokens(t *testing.T) {
	w := newWorld(t, engine.Config{})
	w.model("small", 1, 0.7)
	w.budget(func(b *models.Budget) { b.OnExhausted = models.RejectTask })
	try := func(n int64) error {
		_, err := w.try(&engine.Command{Submit: &engine.Submit{Env: w.env, Single: true, InBatch: true, Tasks: []engine.NewTask{w.task(ofSmall, tokens(n))}}})
		return err
	}
	if err := try(1_000_001); models.CodeOf(err) != models.BudgetExhausted || !strings.Contains(err.Error(), "expected to cost $1.000001") {
		t.Errorf("more than a dollar of tokens: %v", err)
	}
	w.must(try(1_000_000))
}

// A budget of a model counts what really ran on it, by the report's own word where that names a model that is known.
func TestABudgetOfAModelCountsWhatRanOnIt(t *testing.T) {
	w := newWorld(t, engine.Config{})
	w.three()
	worker := w.worker("one", roomy)
	all, small, large := w.budget().Budget.ID, w.budget(ofModel("small")).Budget.ID, w.budget(ofModel("large")).Budget.ID
	are := func(a, s, l int64) {
		t.Helper()
		w.holds(all, a, 0)
		w.holds(small, s, 0)
		w.holds(large, l, 0)
	}
	run := func(model string) models.ID {
		t.Helper()
		id := w.submit(w.task(ofSmall, cents(10)))[0]
		w.settle(worker, usedOf(w.claim(worker, 1)[0], model, 10))
		return id
	}
	other := run("large")
	are(10, 0, 10)
	w.rebuild()
	are(10, 0, 10)
	same := run("small")
	are(20, 10, 10)
	run("small-2027-01-15") // a provider's word for it
	are(30, 20, 10)
	for id, want := range map[models.ID]string{other: "large", same: "small"} {
		if got := w.store.Attempts(models.TaskRef{Env: w.env, ID: id}); len(got) != 1 || got[0].Model != want {
			t.Errorf("the attempt says %+v, want %s", got, want)
		}
	}
	w.unmodel("large") // its budget still knows it
	run("large")
	are(40, 20, 20)
}

func TestALateReportCountsOnTheModelThatItNames(t *testing.T) {
	w := newWorld(t, engine.Config{})
	w.three()
	worker := w.worker("one", roomy)
	all, small, large := w.budget().Budget.ID, w.budget(ofModel("small")).Budget.ID, w.budget(ofModel("large")).Budget.ID
	w.submit(w.task(ofSmall, cents(40)))
	lease := w.claim(worker, 1)[0]
	w.advance(32 * time.Second)
	for id, want := range map[models.ID]int64{all: 40, small: 40, large: 0} {
		w.holds(id, want, 0)
	}
	for range 2 {
		w.settle(worker, usedOf(lease, "large", 15))
		for id, want := range map[models.ID]int64{all: 15, small: 0, large: 15} {
			w.holds(id, want, 0)
		}
	}
	w.rebuild()
	w.holds(small, 0, 0)
}

// Whoever reports nonsense counts as the most that is counted, and turns no sum round.
func TestNonsenseTurnsNoSumRound(t *testing.T) {
	w := newWorld(t, engine.Config{})
	worker := w.worker("one", roomy)
	id := w.budget(func(b *models.Budget) { b.LimitTokens = most(1 << 50) }).Budget.ID
	var reports []engine.Result
	flow, _ := w.flow(nil, nil, "a", "b", "c", "d")
	for _, l := range w.claim(worker, 4) {
		r := ok(l)
		r.Usage = json.RawMessage(`{"tokens_in": 9223372036854775807, "tokens_out": 9223372036854775807, "cost_usd": 1e300}`)
		reports = append(reports, r)
	}
	for _, r := range reports {
		w.settle(worker, r)
		w.rebuild()
	}
	if f := w.figures(id); f.Spent.Micro != 4_000_000_000_000 || f.Spent.Tokens != 4<<41 {
		t.Errorf("spent: %+v", f.Spent)
	}
	if used := w.workflow(flow).Used; used.CostMicro != 4_000_000_000_000 || used.Tokens != 4<<41 {
		t.Errorf("used: %+v", used)
	}
	w.submit(w.task(cents(1)))
	if got := w.claim(worker, 1); len(got) != 0 {
		t.Fatal("it starts")
	}
}
