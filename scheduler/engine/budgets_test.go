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

// budget makes a budget of a dollar a day over all that the tenant does, changed as is said.
func (w *world) budget(change ...func(*models.Budget)) *engine.BudgetFigures {
	w.t.Helper()
	row := models.Budget{ID: w.id(), Tenant: w.tenant(), Timezone: "UTC", LimitMicro: most(1_000_000), AlertAt: []float64{0.8, 1}}
	for _, c := range change {
		c(&row)
	}
	return w.do(&engine.Command{Configure: &engine.Configure{New: true, Action: "budget.put", Budget: &engine.SetBudget{Budget: row, Env: w.env}}}).Budget
}

// rebudget changes a budget that stands.
func (w *world) rebudget(id models.ID, change func(*models.Budget)) *engine.BudgetFigures {
	w.t.Helper()
	row := w.figures(id).Budget
	change(&row)
	return w.do(&engine.Command{Configure: &engine.Configure{Version: -1, Action: "budget.put", Budget: &engine.SetBudget{Budget: row, Env: w.env}}}).Budget
}

func (w *world) figures(id models.ID) engine.BudgetFigures {
	w.t.Helper()
	return w.do(&engine.Command{Look: &engine.Look{Budgets: &engine.BudgetRef{Tenant: w.tenant(), ID: id}}}).Looked.Budgets[0]
}

func (w *world) deleteBudget(id models.ID) {
	w.t.Helper()
	w.do(&engine.Command{Configure: &engine.Configure{Version: -1, Action: "budget.delete", DeleteBudget: &engine.BudgetRef{Tenant: w.tenant(), ID: id}}})
}

// holds says what a budget has spent and reserved, in cents.
func (w *world) holds(id models.ID, spent, reserved int64) {
	w.t.Helper()
	f := w.figures(id)
	if f.Spent.Micro != spent*10_000 || f.Reserved.Micro != reserved*10_000 {
		w.t.Fatalf("%s spent and %s reserved, not %d and %d cents", engine.Dollars(f.Spent.Micro), engine.Dollars(f.Reserved.Micro), spent, reserved)
	}
}

// cents is what a task is said to cost.
func cents(n int64) func(*engine.NewTask) {
	return func(t *engine.NewTask) {
		if t.CostMicro = n * 10_000; n == 0 {
			t.CostMicro = models.Free
		}
	}
}

func paid(l engine.Lease, cents int64) engine.Result { return spent(l, float64(cents)/100, 0) }

func roomy(w *models.Worker) { w.Slots, w.CPUMilli, w.Models = 100, 1_000_000, []string{"small"} }

// until lets time pass at once.
func (w *world) until(at string) {
	w.t.Helper()
	moment, err := time.Parse(time.RFC3339, at)
	w.must(err)
	w.now = models.InstantOf(moment)
	w.turn(&engine.Command{Tick: &engine.Tick{}})
}

func ofSmall(t *engine.NewTask) { t.Class.Model = "small" }

func TestABudgetHoldsOrRefusesWhatItDoesNotCover(t *testing.T) {
	for _, scope := range []struct {
		name   string
		budget func(*world) func(*models.Budget)
		inside func(*engine.NewTask)
		other  func(*engine.NewTask) // that does not count in it; nil: all do
		named  string
	}{
		{"tenant", func(*world) func(*models.Budget) { return func(*models.Budget) {} }, func(*engine.NewTask) {}, nil, "the budget of the tenant a day"},
		{"environment", func(w *world) func(*models.Budget) {
			return func(b *models.Budget) { b.Scope, b.Env = models.EnvironmentScope, w.env }
		}, func(*engine.NewTask) {}, nil, "the budget of the environment production a day"},
		{"type", func(*world) func(*models.Budget) {
			return func(b *models.Budget) { b.Scope, b.Name = models.TypeScope, "work" }
		}, func(*engine.NewTask) {}, func(t *engine.NewTask) { t.Class.Type = "play" }, "the budget of the type work a day"},
		{"model", func(*world) func(*models.Budget) {
			return func(b *models.Budget) { b.Scope, b.Name = models.ModelScope, "small" }
		}, ofSmall, func(t *engine.NewTask) {}, "the budget of the model small a day"},
	} {
		for _, action := range []models.OnExhausted{models.HoldTask, models.RejectTask} {
			t.Run(fmt.Sprintf("%s %s", scope.name, action), func(t *testing.T) {
				w := newWorld(t, engine.Config{})
				worker := w.worker("one", roomy)
				id := w.budget(scope.budget(w), func(b *models.Budget) { b.OnExhausted = action }).Budget.ID
				running := w.submit(w.task(scope.inside, cents(60)), w.task(scope.inside, cents(60)))
				leases := w.claim(worker, 10)
				if len(leases) != 1 {
					t.Fatalf("%d of two start that cost 60 cents each", len(leases))
				}
				w.holds(id, 0, 60)
				for _, part := range []string{scope.named, "$0.40 of $1.00 left ($0.00 spent, $0.60 reserved)", "expected to cost $0.60", "begins anew at 2027-01-16T00:00:00Z"} {
					if got := w.detail(running[1], "tenant_budget"); !strings.Contains(got, part) {
						t.Errorf("%q is not in %q", part, got)
					}
				}
				_, err := w.try(&engine.Command{Submit: &engine.Submit{Env: w.env, Single: true, InBatch: true, Tasks: []engine.NewTask{w.task(scope.inside, cents(50))}}})
				if action == models.RejectTask {
					refusal, _ := err.(*models.Error)
					if refusal == nil || refusal.Code != models.BudgetExhausted || refusal.RetryAfterSeconds != 16*3600 {
						t.Fatalf("a task that does not fit gets %v, %+v", err, refusal)
					}
				} else {
					w.must(err)
				}
				w.submit(w.task(scope.inside, cents(40)))
				if scope.other != nil {
					w.submit(w.task(scope.other, cents(5000)))
				}
				want := 1
				if scope.other != nil {
					want = 2
				}
				cheap := w.claim(worker, 10)
				if len(cheap) != want {
					t.Fatalf("%d start of what is covered or does not count, want %d", len(cheap), want)
				}
				w.holds(id, 0, 100)
				w.rebuild()
				w.settle(worker, paid(leases[0], 0))
				w.holds(id, 0, 40)
				if again := w.claim(worker, 10); len(again) == 0 {
					t.Fatal("what ended cheaper than expected lets nothing start")
				}
			})
		}
	}
}

func TestCheapWorkPassesWhatABudgetHolds(t *testing.T) {
	w := newWorld(t, engine.Config{})
	worker := w.worker("one", roomy)
	id := w.budget().Budget.ID
	var dear []engine.NewTask
	for i := range 8 {
		dear = append(dear, w.task(cents(70+int64(i))))
	}
	held := w.submit(dear...)
	first := w.claim(worker, 10)
	if len(first) != 1 {
		t.Fatalf("%d start", len(first))
	}
	if w.figures(id).Waiting != 7 {
		t.Errorf("it holds %d", w.figures(id).Waiting)
	}
	w.submit(w.task(cents(20)), w.task(cents(0)))
	if more := w.claim(worker, 10); len(more) != 2 {
		t.Fatalf("%d of the cheap ones start", len(more))
	}
	w.settle(worker, paid(first[0], 5))
	next := w.claim(worker, 10)
	if len(next) != 1 || next[0].Row.ID != held[1] {
		t.Fatalf("75 cents are left: the first that is covered starts, not %d", len(next))
	}
	w.settle(worker, paid(next[0], 2)) // 7 spent, 20 reserved
	next = w.claim(worker, 10)
	if len(next) != 1 || next[0].Row.ID != held[2] {
		t.Fatal("what has waited longest goes first of what is covered")
	}
}

func TestWhatABudgetHoldsComesBack(t *testing.T) {
	story := func(t *testing.T, free func(*world, models.ID)) {
		t.Helper()
		w := newWorld(t, engine.Config{})
		worker := w.worker("one", roomy)
		id := w.budget().Budget.ID
		w.submit(w.task(cents(100)), w.task(cents(30)), w.task(cents(30)), w.task(cents(5000)))
		leases := w.claim(worker, 10)
		w.settle(worker, paid(leases[0], 100))
		if more := w.claim(worker, 10); len(more) != 0 {
			t.Fatalf("%d start of a budget that is spent", len(more))
		}
		waits := &engine.Command{Claim: &engine.Claim{Worker: worker.ID, Session: worker.Session, Most: 10, WaitMS: 48 * 3600 * 1000}}
		w.turn(waits)
		free(w, id)
		if r := w.late[waits]; r.Answer == nil || len(r.Answer.Claimed.Leases) < 2 {
			t.Fatalf("what waits starts at once: %+v", r)
		}
	}
	t.Run("when its limit is raised", func(t *testing.T) {
		story(t, func(w *world, id models.ID) {
			w.rebudget(id, func(b *models.Budget) { b.LimitMicro = most(1_600_000) })
		})
	})
	t.Run("when it has no limit any more", func(t *testing.T) {
		story(t, func(w *world, id models.ID) {
			w.rebudget(id, func(b *models.Budget) { b.LimitMicro, b.LimitTokens = nil, most(1000) })
		})
	})
	t.Run("when it is deleted", func(t *testing.T) {
		story(t, func(w *world, id models.ID) { w.deleteBudget(id) })
	})
	t.Run("when a new period begins", func(t *testing.T) {
		story(t, func(w *world, id models.ID) {
			w.now = models.InstantOf(time.Date(2027, 1, 16, 0, 0, 0, 0, time.UTC))
			w.turn()
			if f := w.figures(id); f.Spent.Micro != 0 {
				w.t.Fatalf("%d is spent of a new day", f.Spent.Micro)
			}
		})
	})
	t.Run("when another budget takes its place", func(t *testing.T) {
		story(t, func(w *world, id models.ID) {
			again := w.budget(func(b *models.Budget) { b.LimitMicro = most(2_000_000) })
			if again.Budget.ID != id || again.Made || again.Spent.Micro != 1_000_000 || again.Budget.Version != 2 {
				w.t.Fatalf("it was not replaced: %+v", again)
			}
		})
	})
}

func TestNothingKnownOfTheCostIsATwentiethAndFourAtOnce(t *testing.T) {
	w := newWorld(t, engine.Config{})
	worker := w.worker("one", roomy)
	id := w.budget().Budget.ID
	var tasks []engine.NewTask
	for range 20 {
		tasks = append(tasks, w.task())
	}
	ids := w.submit(tasks...)
	leases := w.claim(worker, 50)
	if len(leases) != 4 {
		t.Fatalf("%d start of which nobody knows the cost", len(leases))
	}
	w.holds(id, 0, 20)
	if got := w.detail(ids[19], "tenant_budget"); !strings.Contains(got, "nobody knows what, which counts $0.05; at most 4 such run at once") {
		t.Error(got)
	}
	w.rebuild()
	w.holds(id, 0, 20)
	w.settle(worker, paid(leases[0], 10)) // now it is known
	w.holds(id, 10, 30)
	if more := w.claim(worker, 50); len(more) != 6 {
		t.Fatalf("60 cents are left at 10 each: %d start", len(more))
	}
	w.rebuild()
	w.holds(id, 10, 90)
}

func TestAFailedAttemptHasSpentToo(t *testing.T) {
	w := newWorld(t, engine.Config{})
	worker := w.worker("one", roomy)
	id := w.budget().Budget.ID
	w.submit(w.task(cents(30)))
	r := failed(w.claim(worker, 1)[0], "invalid_input")
	r.Usage = json.RawMessage(`{"cost_usd": 0.25, "tokens_in": 7}`)
	w.settle(worker, r)
	w.holds(id, 25, 0)
	if got := w.figures(id).Spent.Tokens; got != 7 {
		t.Errorf("%d tokens", got)
	}
}

// What was used until a task was given back was used: it is booked with the report, once, however often that is sent.
func TestAReleasedAttemptHasSpentToo(t *testing.T) {
	w := newWorld(t, engine.Config{})
	worker := w.worker("one", roomy)
	id := w.budget().Budget.ID
	w.submit(w.task(cents(30)))
	lease := w.claim(worker, 1)[0]
	r := engine.Result{Task: models.TaskRef{Env: w.env, ID: lease.Row.ID}, Token: lease.Row.Token, Outcome: models.AttemptReleased, Usage: json.RawMessage(`{"cost_usd": 0.25, "tokens_in": 7}`)}
	for range 2 {
		w.settle(worker, r)
		w.holds(id, 25, 0)
	}
	if got := w.figures(id).Spent.Tokens; got != 7 {
		t.Errorf("%d tokens", got)
	}
	if row := w.row(lease.Row.ID); row.State != models.Ready || row.AttemptsUsed != 0 {
		t.Errorf("the task: %v, %d attempts used", row.State, row.AttemptsUsed)
	}
	w.rebuild()
	w.holds(id, 25, 0)
}

func TestALostAttemptIsTakenToHaveSpentUntilItReports(t *testing.T) {
	for _, c := range []struct {
		name string
		lose func(*world)
	}{
		{"its worker was silent", func(w *world) { w.advance(32 * time.Second) }},
		{"it ran too long", func(w *world) { w.now = w.now.Add(11 * time.Second); w.turn(&engine.Command{Tick: &engine.Tick{}}) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, engine.Config{})
			worker := w.worker("one", roomy)
			day := w.budget(func(b *models.Budget) { b.LimitMicro = most(2_000_000) }).Budget.ID
			only := w.budget(func(b *models.Budget) {
				b.Scope, b.Name, b.Period, b.LimitMicro, b.LimitTokens = models.TypeScope, "work", models.InTotal, nil, most(1000)
			}).Budget.ID
			w.submit(w.task(cents(40), func(t *engine.NewTask) { t.HardSeconds = 10 }))
			lease := w.claim(worker, 1)[0]
			c.lose(w)
			w.holds(day, 40, 0)
			if got := w.figures(only).Spent.Tokens; got != 50 {
				t.Fatalf("%d tokens are presumed where nobody knows: a twentieth is 50", got)
			}
			w.rebuild()
			late := paid(lease, 15)
			late.Usage = json.RawMessage(`{"cost_usd": 0.15, "tokens_out": 90}`)
			for range 2 { // the second time it is booked already
				if got := w.settle(worker, late); got[0].Accepted || !got[0].Booked {
					t.Fatalf("a late report: %+v", got[0])
				}
				w.holds(day, 15, 0)
				if got := w.figures(only).Spent.Tokens; got != 90 {
					t.Fatalf("%d tokens", got)
				}
			}
			w.rebuild()
			w.holds(day, 15, 0)
		})
	}
}

func TestWhatIsSpentCountsInThePeriodOfTheClaim(t *testing.T) {
	w := newWorld(t, engine.Config{})
	worker := w.worker("one", func(r *models.Worker) { roomy(r); r.LeaseSeconds = 300 })
	day, month := w.budget().Budget.ID, w.budget(func(b *models.Budget) { b.Period = models.ByMonth }).Budget.ID
	w.until("2027-01-15T23:59:00Z")
	w.submit(w.task(cents(60)), w.task(cents(30)), w.task(cents(10)))
	leases := w.claim(worker, 3)
	w.holds(day, 0, 100)
	w.until("2027-01-16T00:00:30Z")
	w.holds(day, 0, 0)
	w.holds(month, 0, 100)
	w.settle(worker, paid(leases[0], 70))
	w.holds(day, 0, 0)
	w.holds(month, 70, 40)
	w.until("2027-01-16T00:04:50Z") // the others are lost
	w.holds(day, 0, 0)
	w.holds(month, 110, 0)
	w.settle(worker, paid(leases[1], 20))
	w.holds(day, 0, 0)
	w.holds(month, 100, 0)
	yesterday := models.InstantOf(time.Date(2027, 1, 15, 0, 0, 0, 0, time.UTC))
	if got := w.store.SpentOf(day); len(got) != 1 || got[0].Since != yesterday || got[0].Micro != 1_000_000 {
		t.Errorf("it is booked as %+v", got)
	}
}

func TestAnotherTimeZoneForgetsNothingThatWasSpent(t *testing.T) {
	w := newWorld(t, engine.Config{})
	worker := w.worker("one", roomy)
	id := w.budget().Budget.ID
	w.submit(w.task(cents(30)), w.task(cents(20)))
	leases := w.claim(worker, 2)
	w.settle(worker, paid(leases[0], 30))
	for _, zone := range []string{"Africa/Lusaka", "America/New_York", "Pacific/Kiritimati", "UTC"} {
		f := w.rebudget(id, func(b *models.Budget) { b.Timezone = zone })
		w.holds(id, 30, 20)
		w.rebuild()
		w.holds(id, 30, 20)
		if f.Until <= w.now || f.Until > w.now.Add(24*time.Hour) {
			t.Fatalf("%s: the day ends at %s", zone, f.Until.Time())
		}
	}
}

func (w *world) alerts() (out []string) {
	for _, e := range w.store.Events() {
		if e.Name == "budget.alert" {
			out = append(out, fmt.Sprint(e.Threshold))
		}
	}
	return out
}

func TestEachThresholdIsToldOnceAPeriod(t *testing.T) {
	w := newWorld(t, engine.Config{})
	worker := w.worker("one", roomy)
	id := w.budget(func(b *models.Budget) { b.AlertAt = []float64{0.5, 0.8, 1} }).Budget.ID
	spend := func(n int64) {
		t.Helper()
		w.submit(w.task(cents(0)))
		w.settle(worker, paid(w.claim(worker, 1)[0], n))
	}
	is := func(want ...string) {
		t.Helper()
		if got := w.alerts(); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Fatalf("%v were told, not %v", got, want)
		}
	}
	spend(49)
	is()
	spend(1)
	is("0.5")
	w.rebuild()
	spend(10)
	is("0.5")
	spend(40)
	is("0.5", "0.8", "1")
	w.rebudget(id, func(b *models.Budget) { b.LimitMicro = most(2_000_000) })
	is("0.5", "0.8", "1")
	spend(60)
	is("0.5", "0.8", "1", "0.8") // of a raised limit it is news
	w.rebudget(id, func(b *models.Budget) { b.LimitMicro = most(1_600_000) })
	is("0.5", "0.8", "1", "0.8", "1")
	w.rebudget(id, func(b *models.Budget) { b.LimitMicro = most(1_700_000) }) // what is spent still is above 0.8 of it: nothing was crossed
	is("0.5", "0.8", "1", "0.8", "1")
	spend(5)
	is("0.5", "0.8", "1", "0.8", "1")
	spend(10)
	is("0.5", "0.8", "1", "0.8", "1", "1")
	w.until("2027-01-16T10:00:00Z")
	spend(85)
	is("0.5", "0.8", "1", "0.8", "1", "1", "0.5") // in a new day
	for _, e := range w.store.Events() {
		if e.Name == "budget.alert" && (e.Budget != id || e.Env != w.env || !strings.Contains(e.Reason, "of it is spent")) {
			t.Errorf("%+v", e)
		}
	}
}

func TestTheBudgetsOfTwoTenantsKnowNothingOfEachOther(t *testing.T) {
	w := newWorld(t, engine.Config{})
	worker := w.worker("one", roomy)
	own := w.budget().Budget.ID
	home := w.env
	other := w.do(&engine.Command{Configure: &engine.Configure{New: true, Action: "tenant.create", Tenant: &models.Tenant{ID: w.id(), Slug: "birch", Name: "Birch", Weight: 1, Timezone: "UTC"}}}).Tenant
	for _, env := range w.engine.Board().Envs {
		if env.Tenant == other.Number {
			w.env = env.Env
		}
	}
	w.submit(w.task(cents(5000)), w.task(cents(5000)))
	if got := w.claim(worker, 10); len(got) != 2 {
		t.Fatalf("%d of another tenant start", len(got))
	}
	if _, err := w.try(&engine.Command{Look: &engine.Look{Budgets: &engine.BudgetRef{Tenant: w.tenant(), ID: own}}}); models.CodeOf(err) != models.NotFound {
		t.Errorf("another's budget: %v", err)
	}
	if _, err := w.try(&engine.Command{Configure: &engine.Configure{Version: -1, DeleteBudget: &engine.BudgetRef{Tenant: w.tenant(), ID: own}}}); models.CodeOf(err) != models.NotFound {
		t.Errorf("another's budget was deleted: %v", err)
	}
	row := models.Budget{ID: own, Tenant: w.tenant(), LimitMicro: most(1)}
	if _, err := w.try(&engine.Command{Configure: &engine.Configure{Version: -1, Budget: &engine.SetBudget{Budget: row}}}); models.CodeOf(err) != models.NotFound {
		t.Errorf("another's budget was changed: %v", err)
	}
	w.env = home
	w.holds(own, 0, 0)
}

func TestACrashLoopStopsAtItsBudgetPlusOneEstimate(t *testing.T) {
	w := newWorld(t, engine.Config{})
	worker := w.worker("one", roomy)
	id := w.budget().Budget.ID
	policy := func(t *engine.NewTask) {
		t.HasPolicy, t.Input = true, json.RawMessage(`{"retry_policy": {"max_attempts": 1000, "backoff": "fixed", "initial_delay_seconds": 0.000001, "max_delay_seconds": 1, "jitter": false}}`)
		t.MaxAttempts = 1000
	}
	task := w.submit(w.task(cents(10), policy))[0]
	starts := 0
	for range 40 {
		w.now = w.now.Add(time.Second)
		w.turn(&engine.Command{Tick: &engine.Tick{}})
		for _, lease := range w.claim(worker, 1) {
			starts++
			r := failed(lease, "internal")
			r.Usage = json.RawMessage(`{"cost_usd": 0.15}`)
			w.settle(worker, r)
		}
	}
	if f := w.figures(id); f.Spent.Micro > 1_000_000+100_000 || starts != 7 {
		t.Fatalf("it crashed %d times and spent %s of $1.00", starts, engine.Dollars(f.Spent.Micro))
	}
	if got := w.why(task); len(got) != 1 || got[0] != "tenant_budget" {
		t.Errorf("it waits for %v", got)
	}
}

func TestATaskWaitsForItsKeyAndItsBudget(t *testing.T) {
	w := newWorld(t, engine.Config{})
	worker := w.worker("one", roomy)
	id := w.budget().Budget.ID
	ids := w.submit(w.task(cents(60), keys("a")), w.task(cents(60), keys("a")), w.task(cents(30), keys("a")))
	first := w.claim(worker, 10)
	if len(first) != 1 || first[0].Row.ID != ids[0] {
		t.Fatal("the first starts alone")
	}
	w.settle(worker, paid(first[0], 60))
	second := w.claim(worker, 10) // 40 cents are left: the next of the key does not fit, the third does
	if len(second) != 1 || second[0].Row.ID != ids[2] {
		t.Fatalf("%d start", len(second))
	}
	w.rebudget(id, func(b *models.Budget) { b.LimitMicro = most(5_000_000) })
	if none := w.claim(worker, 10); len(none) != 0 {
		t.Fatal("the key is held")
	}
	w.settle(worker, paid(second[0], 30))
	if third := w.claim(worker, 10); len(third) != 1 || third[0].Row.ID != ids[1] {
		t.Fatal("with its key free and its budget raised it starts")
	}
}

func TestTasksOfAWorkflowAreWeighedByWhatTheyCost(t *testing.T) {
	w := newWorld(t, engine.Config{})
	worker := w.worker("one", roomy)
	costs := map[string]int64{"dear": 80, "dearer": 90, "cheap": 15, "free": 0}
	id, ids := w.flow(func(f *engine.NewWorkflow) { f.Budget.CostMicro = 1_000_000 }, func(t *engine.NewTask) { cents(costs[t.Key])(t) }, "dear", "dearer", "cheap", "free")
	leases := w.claim(worker, 10)
	if len(leases) != 3 {
		t.Fatalf("%d start", len(leases))
	}
	if got := w.detail(ids["dearer"], "workflow_budget"); !strings.Contains(got, "the workflow's budget has $0.05 of $1.00 left") || !strings.Contains(got, "to cost $0.90") {
		t.Error(got)
	}
	w.rebuild()
	for _, l := range leases {
		w.settle(worker, paid(l, 3))
	}
	if got := w.workflow(id).Used.CostMicro; got != 90_000 {
		t.Fatalf("%d are used", got)
	}
	last := w.claim(worker, 10)
	if len(last) != 1 || last[0].Row.ID != ids["dearer"] {
		t.Fatal("91 cents are left: the last one starts")
	}
	w.advance(32 * time.Second) // it is lost, and taken to have spent what was expected
	if got := w.workflow(id).Used.CostMicro; got != 990_000 {
		t.Fatalf("%d are used", got)
	}
	if none := w.claim(worker, 10); len(none) != 0 {
		t.Fatal("one cent is left, and it starts again")
	}
	w.rebuild()
	w.settle(worker, paid(last[0], 2))
	if got := w.workflow(id).Used.CostMicro; got != 110_000 {
		t.Fatalf("%d are used", got)
	}
	worker = w.worker("two", roomy)
	if again := w.claim(worker, 10); len(again) != 0 {
		t.Fatal("89 cents are left, and it costs 90")
	}
	w.must(w.steer(func(s *engine.Steer) { s.Edit = &engine.FlowEdit{Budget: &models.FlowBudget{CostMicro: 1_100_000}} }, id))
	if again := w.claim(worker, 10); len(again) != 1 {
		t.Fatal("a raised limit lets it start")
	}
}

func TestARunThatItsBudgetRefusesHasFailed(t *testing.T) {
	w := newWorld(t, engine.Config{})
	worker := w.worker("one", roomy)
	w.budget(func(b *models.Budget) { b.OnExhausted = models.RejectTask })
	s := w.schedule("nightly")
	w.submit(w.task(cents(100)))
	w.claim(worker, 1)
	run := w.trigger(s)
	if run.Outcome != "failed" || !strings.Contains(run.Cause, "the budget of the tenant") {
		t.Errorf("the run is %s: %s", run.Outcome, run.Cause)
	}
}

func TestADryRunSaysWhatABudgetRefuses(t *testing.T) {
	w := newWorld(t, engine.Config{})
	w.budget(func(b *models.Budget) { b.OnExhausted = models.RejectTask })
	dry := w.do(&engine.Command{Submit: &engine.Submit{Env: w.env, Dry: true, InBatch: true, Tasks: []engine.NewTask{w.task(cents(101)), w.task(cents(100))}}}).Submitted.Dry
	if len(dry[0].Refusals) != 1 || dry[0].Refusals[0].Code != models.BudgetExhausted || *dry[0].EstimatedCost != 1_010_000 {
		t.Errorf("%+v", dry[0])
	}
	if len(dry[1].Refusals) != 0 {
		t.Errorf("%+v", dry[1])
	}
}
