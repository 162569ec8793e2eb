package engine_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"nightshift/models"
	"nightshift/models/storetest"
	"nightshift/scheduler/engine"
)

// wallet is a world in which budgets come, change and go while tasks run that cost something else than was said.
type wallet struct {
	*world
	rng    *rand.Rand
	worker models.Worker
	leases []engine.Lease
	gone   []engine.Lease // lost: their workers may still report
	brains byte
	starts int
	holds  int
	lowers int // tasks that got another model for a budget
}

func newWallet(t *testing.T, seed uint64, store func(testing.TB, func() models.Instant) *storetest.Mirror) *wallet {
	cfg := engine.Config{}
	if seed%2 == 0 {
		cfg.Heads, cfg.MostEntries, cfg.Slice = 2, 20, 3
	}
	w := &wallet{world: worldOn(t, cfg, store), rng: rand.New(rand.NewPCG(seed, 23))}
	w.worker = w.worker0()
	w.three()
	w.saw = w.judge
	return w
}

func (w *wallet) worker0() models.Worker {
	return w.world.worker("wide", func(r *models.Worker) { roomy(r); r.Slots = 12 })
}

// judge holds what a batch started against the budgets it counts in: with it, none is passed.
func (w *wallet) judge(p *models.Plan) {
	var rows []models.Task
	for _, t := range p.Tasks {
		if t.State == models.Running {
			rows = append(rows, t)
		}
	}
	for _, c := range p.Changes {
		if c.From == models.Ready && c.After.State == models.Running {
			rows = append(rows, c.After)
		}
		if models.IsBudgetGate(c.After.Gate) {
			w.holds++
		}
	}
	for i := range p.Events {
		if p.Events[i].Name == "task.downgraded" {
			w.lowers++
		}
	}
	for i := range rows {
		w.starts++
		for _, a := range w.engine.Board().Accounts(&rows[i]) {
			held := a.Purse.Held()
			for what, over := range map[string]bool{
				"money":  a.Purse.LimitMicro != nil && a.Purse.Spent.Micro+held.Micro > *a.Purse.LimitMicro,
				"tokens": a.Purse.LimitTokens != nil && a.Purse.Spent.Tokens+held.Tokens > *a.Purse.LimitTokens,
			} {
				if over {
					w.t.Fatalf("task %x started, and the %s of %+v are passed", rows[i].ID, what, a.Purse)
				}
			}
		}
	}
}

func (w *wallet) some() engine.NewTask {
	return w.task(func(t *engine.NewTask) {
		t.Class.Type = []string{"a", "b", "c"}[w.rng.IntN(3)]
		if w.rng.IntN(3) > 0 {
			cents(w.rng.Int64N(30))(t)
		}
		if w.rng.IntN(4) == 0 {
			t.Class.Tokens, t.Tokens = true, 1+w.rng.Int64N(80)
		}
		switch w.rng.IntN(8) {
		case 0:
			ofSmall(t)
		case 1, 2, 3:
			auto([]float64{0, 0.8}[w.rng.IntN(2)])(t)
		}
		if w.rng.IntN(5) == 0 {
			keys(fmt.Sprintf("k%d", w.rng.IntN(2)))(t)
		}
		t.HardSeconds = 20 + w.rng.Int32N(20)
	})
}

func (w *wallet) act() {
	switch n := w.rng.IntN(24); {
	case n < 5:
		var tasks []engine.NewTask
		for range 1 + w.rng.IntN(6) {
			tasks = append(tasks, w.some())
		}
		submit := &engine.Submit{Env: w.env, InBatch: true, Tasks: tasks}
		if w.rng.IntN(4) == 0 {
			submit.Workflow = &engine.NewWorkflow{ID: w.id(), Name: "w", Input: json.RawMessage(`{}`), Budget: models.FlowBudget{CostMicro: w.rng.Int64N(400_000), Tokens: w.rng.Int64N(200)}}
			for i := range tasks {
				tasks[i].Key = fmt.Sprint(i)
			}
		}
		_, _ = w.try(&engine.Command{Submit: submit}) // a budget may refuse it
	case n < 9:
		w.leases = append(w.leases, w.claim(w.worker, 1+w.rng.Int32N(4))...)
	case n < 15 && len(w.leases) > 0:
		i := w.rng.IntN(len(w.leases))
		r := usedOf(w.leases[i], []string{w.leases[i].Model, "small", "middle", "unheard"}[w.rng.IntN(4)], w.rng.Int64N(40))
		if w.rng.IntN(3) == 0 {
			r = failed(w.leases[i], "timeout")
			r.Usage = json.RawMessage(`{"cost_usd": 0.07, "tokens_out": 30}`)
		}
		w.leases = slices.Delete(w.leases, i, i+1)
		w.settle(w.worker, r)
	case n < 16 && len(w.gone) > 0:
		i := w.rng.IntN(len(w.gone))
		w.settle(w.worker, paid(w.gone[i], w.rng.Int64N(40)))
	case n < 17 && w.rng.IntN(3) == 0:
		w.model("small", 1+w.rng.Int64N(5_000), 0.7, func(m *models.Model) { m.Enabled = w.rng.IntN(4) > 0 })
	case n < 17:
		w.budget(func(b *models.Budget) { w.draw(b) })
	case n < 19:
		all := w.do(&engine.Command{Look: &engine.Look{Budgets: &engine.BudgetRef{Tenant: w.tenant()}}}).Looked.Budgets
		if len(all) == 0 {
			return
		}
		id := all[w.rng.IntN(len(all))].Budget.ID
		if w.rng.IntN(2) == 0 {
			w.deleteBudget(id)
			return
		}
		w.rebudget(id, func(b *models.Budget) {
			scope, name, env, period := b.Scope, b.Name, b.Env, b.Period
			w.draw(b)
			b.Scope, b.Name, b.Env, b.Period = scope, name, env, period
		})
	case n < 20:
		w.rebuild()
	case n < 21:
		w.brains++
		w.engine = engine.New(engine.Config{Seed: [32]byte{w.brains}})
		w.rebuild()
	case n < 22:
		w.now = w.now.Add(time.Duration(w.rng.IntN(30)) * time.Second)
		w.turn(&engine.Command{Tick: &engine.Tick{}})
		w.lost()
	case n < 23:
		w.now = w.now.Add(time.Duration(w.rng.IntN(20)) * time.Hour)
		w.turn(&engine.Command{Tick: &engine.Tick{}})
		w.turn(&engine.Command{Tick: &engine.Tick{}})
		w.lost()
	default:
		w.now = w.now.Add(time.Millisecond)
		w.turn(&engine.Command{Tick: &engine.Tick{}})
	}
}

func (w *wallet) draw(b *models.Budget) {
	b.Scope, b.Period = models.BudgetScope(min(w.rng.IntN(6), 3)), models.BudgetPeriod(w.rng.IntN(3))
	b.Env, b.Name = 0, map[models.BudgetScope]string{models.TypeScope: []string{"a", "b"}[w.rng.IntN(2)], models.ModelScope: []string{"small", "middle"}[w.rng.IntN(2)]}[b.Scope]
	if b.Scope == models.EnvironmentScope {
		b.Env = w.env
	}
	b.Timezone = []string{"UTC", "Africa/Lusaka", "America/St_Johns"}[w.rng.IntN(3)]
	b.LimitMicro, b.LimitTokens = most(w.rng.Int64N(20)*200_000), nil
	if w.rng.IntN(3) == 0 {
		b.LimitTokens = most(w.rng.Int64N(3000))
	}
	if w.rng.IntN(6) == 0 {
		b.LimitMicro = nil
	}
	b.OnExhausted = models.OnExhausted(min(w.rng.IntN(5), 2))
}

// lost sorts out which leases are not the worker's any more.
func (w *wallet) lost() {
	w.leases = slices.DeleteFunc(w.leases, func(l engine.Lease) bool {
		if w.engine.Board().Leases[l.Row.Token] != nil {
			return false
		}
		w.gone = append(w.gone, l)
		return true
	})
}

// Whatever starts is covered by all budgets it counts in, and what is covered is not left behind a gate (each turn holds the
// board against its rebuild), while budgets come and go, brains change, days pass, and lost attempts report late.
func TestNothingStartsThatABudgetDoesNotCover(t *testing.T) {
	const most = 8
	starts, holds, lowers := 0, 0, 0
	for seed := range uint64(most) {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			w := newWallet(t, seed, bothOn(seed < 2))
			for range 300 {
				w.act()
			}
			starts, holds, lowers = starts+w.starts, holds+w.holds, lowers+w.lowers
		})
	}
	if t.Logf("%d started, %d were held, %d got another model", starts, holds, lowers); starts < 30*most || holds < 20*most || lowers < most {
		t.Error("it shows too little")
	}
}

// Of a budget that nobody raises, no more is ever spent than what attempts cost beyond what was expected of them.
func TestABudgetIsPassedByNoMoreThanWhatWasNotExpected(t *testing.T) {
	for seed := range uint64(20) {
		w := worldOn(t, engine.Config{}, storetest.Lone)
		rng := rand.New(rand.NewPCG(seed, 29))
		worker := w.worker("wide", func(r *models.Worker) { roomy(r); r.Slots = 8 })
		id := w.budget(func(b *models.Budget) { b.Period = models.InTotal }).Budget.ID
		var leases []engine.Lease
		beyond := int64(0)
		for range 200 {
			switch rng.IntN(3) {
			case 0:
				w.submit(w.task(cents(1+rng.Int64N(20))), w.task(cents(1+rng.Int64N(60))))
			case 1:
				leases = append(leases, w.claim(worker, 4)...)
			default:
				if len(leases) == 0 {
					continue
				}
				l, cost := leases[0], rng.Int64N(40)
				leases = leases[1:]
				beyond += max(0, cost*10_000-l.Row.CostMicro)
				if r := paid(l, cost); rng.IntN(3) > 0 {
					w.settle(worker, r)
				} else { // it is lost, and heard of later
					w.now = w.now.Add(31 * time.Second)
					w.turn(&engine.Command{Tick: &engine.Tick{}})
					for _, other := range leases { // the others with it
						beyond += max(0, 390_000-other.Row.CostMicro)
					}
					w.settle(worker, r)
					for _, other := range leases {
						w.settle(worker, paid(other, rng.Int64N(40)))
					}
					leases = nil
				}
			}
			if f := w.figures(id); f.Spent.Micro > 1_000_000+beyond {
				t.Fatalf("seed %d: %s are spent of $1.00, of which %s were not expected", seed, engine.Dollars(f.Spent.Micro), engine.Dollars(beyond))
			}
		}
	}
}
