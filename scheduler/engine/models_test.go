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

// model puts a model of the tenant's own, at so many dollars a million tokens.
func (w *world) model(name string, usd int64, quality float64, change ...func(*models.Model)) *models.Model {
	w.t.Helper()
	row := models.Model{
		Tenant: w.tenant(), Name: name, Provider: "outside", InputMicro: usd * 1_000_000, OutputMicro: usd * 1_000_000,
		Quality: map[string]float64{models.DefaultQuality: quality}, Enabled: true,
	}
	for _, c := range change {
		c(&row)
	}
	return w.configure(&engine.Configure{Model: &row, Action: "model.put"}).Model
}

func (w *world) unmodel(name string) {
	w.t.Helper()
	w.configure(&engine.Configure{DeleteModel: &models.ModelRef{Tenant: w.tenant(), Name: name}, Action: "model.delete"})
}

// three are a small, a middle and a large one.
func (w *world) three() {
	w.t.Helper()
	w.model("small", 1, 0.7)
	w.model("middle", 3, 0.85)
	w.model("large", 9, 0.97)
}

func auto(target float64, candidates ...string) func(*engine.NewTask) {
	return func(t *engine.NewTask) {
		t.Model = &models.ModelAsk{QualityTarget: target, Candidates: candidates}
	}
}

func named(name string) func(*engine.NewTask) {
	return func(t *engine.NewTask) { t.Class.Model = name }
}

// modelOf is the model in a task's class, and the last choice that is kept of it.
func (w *world) modelOf(id models.ID) (string, models.Choice) {
	w.t.Helper()
	class := w.engine.Board().Classes[w.row(id).Class]
	list := w.store.Choices(models.TaskRef{Env: w.env, ID: id})
	if len(list) == 0 {
		return class.Model, models.Choice{}
	}
	return class.Model, list[len(list)-1]
}

func (w *world) modelIs(id models.ID, want string) models.Choice {
	w.t.Helper()
	got, choice := w.modelOf(id)
	if w.row(id).Gate == models.ModelGate {
		got = ""
	}
	if got != want || choice.N > 0 && choice.Chosen != want {
		w.t.Fatalf("its model is %q (kept %+v), want %q", got, choice, want)
	}
	return choice
}

func TestTheCheapestModelThatIsGoodEnoughIsChosenAtSubmit(t *testing.T) {
	w := newWorld(t, engine.Config{})
	w.three()
	worker := w.worker("one", func(m *models.Worker) { m.Slots = 20 })
	ids := w.submit(w.task(auto(0)), w.task(auto(0.8)), w.task(auto(0.9)), w.task(auto(0.8, "large")), w.task(named("middle")), w.task(named("unheard")))
	for i, want := range []string{"small", "middle", "large", "large", "middle", "unheard"} {
		choice := w.modelIs(ids[i], want)
		if i < 3 && (choice.N != 1 || choice.Reason == "" || len(choice.Ranking) != 3 || choice.Ranking[0].Model != want || choice.Asked == nil) {
			t.Errorf("kept of it: %+v", choice)
		}
	}
	if _, choice := w.modelOf(ids[1]); choice.Ranking[1].Why == "" || choice.Ranking[0].CostMicro != 1250*3 || choice.Ranking[0].QualityLow < 0.8 {
		t.Errorf("the ranking: %+v", choice.Ranking)
	}
	if row := w.row(ids[4]); row.Has(models.ChoosesModel) {
		t.Error("a task that names its model is taken for one that chooses")
	}
	got := map[models.ID]string{}
	for _, l := range w.claim(worker, 20) {
		got[l.Row.ID] = l.Model
	}
	if len(got) != 5 || got[ids[1]] != "middle" || got[ids[4]] != "middle" {
		t.Errorf("claimed: %v", got) // nobody has to load what answers from outside; the unheard is to be loaded
	}
	w.rebuild()
	w.modelIs(ids[2], "large")
}

func TestWhatWorkersLoadIsAskedOfThem(t *testing.T) {
	w := newWorld(t, engine.Config{})
	w.model("near", 1, 0.9, func(m *models.Model) { m.Provider = models.LocalProvider })
	w.model("far", 3, 0.9)
	id := w.submit(w.task(auto(0.8)))[0]
	w.modelIs(id, "far") // no worker has the cheaper one
	bare := w.worker("bare")
	w.worker("loaded", func(m *models.Worker) { m.Models = []string{"near"} })
	second := w.submit(w.task(auto(0.8)))[0]
	w.modelIs(second, "near")
	leases := w.claim(bare, 5)
	if len(leases) != 1 || leases[0].Row.ID != id {
		t.Fatalf("a worker that has not loaded it got %d leases", len(leases))
	}
	w.model("near", 1, 0.9) // from now on it answers from outside
	if leases = w.claim(bare, 5); len(leases) != 1 || leases[0].Model != "near" {
		t.Fatalf("nobody has to load it any more, and a worker got %+v", leases)
	}
}

func TestATaskWaitsWhileNoModelFits(t *testing.T) {
	w := newWorld(t, engine.Config{})
	worker := w.worker("one", func(m *models.Worker) { m.Slots = 20 })
	ids := w.submit(w.task(auto(0.9)), w.task(auto(0)), w.task(auto(0.9), func(t *engine.NewTask) { t.RunAt = w.now.Add(time.Minute) }))
	for i, n := range []int{1, 1, 0} {
		w.modelIs(ids[i], "")
		if w.row(ids[i]).Gate == models.ModelGate != (n == 1) {
			t.Fatalf("number %d is parked at %q", i, w.row(ids[i]).Gate)
		}
	}
	if got := w.detail(ids[0], "model_unavailable"); !strings.Contains(got, "there is no model") {
		t.Errorf("explained by %q", got)
	}
	w.model("small", 1, 0.7)
	w.modelIs(ids[0], "")
	w.modelIs(ids[1], "small")
	started := w.claim(worker, 5)
	if len(started) != 1 {
		t.Fatalf("%d started", len(started))
	}
	w.settle(worker, ok(started[0]))
	w.rebuild()
	w.turn()
	w.modelIs(ids[0], "")
	w.model("large", 9, 0.97)
	w.advance(2 * time.Minute)
	for _, i := range []int{0, 2} {
		if choice := w.modelIs(ids[i], "large"); choice.N != 2 {
			t.Errorf("kept of it: %+v", choice)
		}
	}
	if got := w.claim(worker, 5); len(got) != 2 {
		t.Fatalf("%d started", len(got))
	}
}

// What waits for another model goes on under a brain that has just taken over.
func TestAnotherBrainGoesOnChoosing(t *testing.T) {
	w := newWorld(t, engine.Config{})
	ids := w.submit(w.task(auto(0.9)), w.task(auto(0.9)))
	row := models.Model{Tenant: w.tenant(), Name: "large", Provider: "outside", Quality: map[string]float64{"default": 0.97}, Enabled: true}
	w.once([]*engine.Command{{ID: w.id(), Configure: &engine.Configure{Model: &row, Version: -1, Action: "model.put"}}})
	w.engine = engine.New(engine.Config{}) // before anybody was looked at again
	w.rebuild()
	w.turn()
	w.turn()
	for _, id := range ids {
		w.modelIs(id, "large")
	}
}

func TestAModelThatIsRemovedOrDisabledGivesItsTasksAway(t *testing.T) {
	w := newWorld(t, engine.Config{})
	w.three()
	var tasks []engine.NewTask
	for range 30 { // more than a line holds at hand
		tasks = append(tasks, w.task(auto(0)))
	}
	ids := w.submit(tasks...)
	byName := w.submit(w.task(named("small")))[0]
	w.unmodel("small")
	for _, id := range ids {
		if choice := w.modelIs(id, "middle"); choice.N != 2 {
			t.Fatalf("kept of it: %+v", choice)
		}
	}
	if got := w.detail(byName, "model_unavailable"); !strings.Contains(got, "no model small any more") {
		t.Errorf("explained by %q", got)
	}
	w.model("middle", 3, 0.85, func(m *models.Model) { m.Enabled = false })
	w.rebuild()
	w.turn()
	for _, id := range ids {
		w.modelIs(id, "large")
	}
	w.unmodel("large")
	for _, id := range ids {
		w.modelIs(id, "")
		w.want(id, models.Ready)
	}
	w.model("middle", 3, 0.85)
	w.model("small", 1, 0.7)
	for _, id := range ids {
		if got, _ := w.modelOf(id); got == "" || w.row(id).Gate != "" {
			t.Fatalf("it still waits: %q at %q", got, w.row(id).Gate)
		}
	}
	if got := w.why(byName); len(got) != 1 || got[0] != "no_capable_worker" {
		t.Errorf("explained by %v", got)
	}
}

func (w *world) outage(worker models.Worker, leases []engine.Lease) {
	w.t.Helper()
	for _, l := range leases {
		w.settle(worker, failed(l, "provider_outage"))
	}
}

func TestABreakerOpensAndItsFallbacksServe(t *testing.T) {
	w := newWorld(t, engine.Config{})
	w.model("small", 1, 0.9, func(m *models.Model) { m.Fallbacks = []string{"gone", "large"} })
	w.model("middle", 3, 0.9)
	w.model("large", 9, 0.9)
	worker := w.worker("one", func(m *models.Worker) { m.Slots = 20 })
	var tasks []engine.NewTask
	for range 5 {
		tasks = append(tasks, w.task(auto(0.8), func(t *engine.NewTask) { t.MaxAttempts = 9 }))
	}
	ids := w.submit(tasks...)
	byName := w.submit(w.task(named("small")))[0]
	w.outage(worker, w.claim(worker, 2))
	w.modelIs(ids[4], "small")
	w.outage(worker, w.claim(worker, 1))
	for _, id := range ids[3:] {
		if choice := w.modelIs(id, "large"); !strings.Contains(choice.Reason, "fallback of small") {
			t.Errorf("because %q", choice.Reason)
		}
	}
	if choice := w.modelIs(byName, "large"); choice.Named != "small" {
		t.Errorf("kept of it: %+v", choice)
	}
	w.modelIs(w.submit(w.task(auto(0.8)))[0], "large")
	without := w.submit(w.task(auto(0.8, "small")))[0]
	if got := w.detail(without, "model_unavailable"); !strings.Contains(got, "small") || !strings.Contains(got, "provider_outage") {
		t.Errorf("explained by %q", got)
	}
	for _, l := range w.claim(worker, 20) {
		w.settle(worker, ok(l))
	}
	w.rebuild() // it stays open
	if got := w.claim(worker, 20); len(got) != 0 {
		t.Fatalf("%d started on a model whose breaker is open", len(got))
	}
	w.advance(31 * time.Second) // those that failed are tried again elsewhere
	for _, id := range ids[:3] {
		w.modelIs(id, "large")
	}
	w.modelIs(without, "small")
	second := w.submit(w.task(auto(0.8, "small")))[0]
	on := func(name string) (out []engine.Lease) {
		for _, l := range w.claim(worker, 20) {
			if l.Model == name {
				out = append(out, l)
			}
		}
		return out
	}
	tries := on("small")
	if len(tries) != 1 || tries[0].Row.ID != without {
		t.Fatalf("%d try the model again", len(tries))
	}
	if got := w.detail(second, "model_unavailable"); !strings.Contains(got, "one task at a time tries the model small") {
		t.Errorf("explained by %q", got)
	}
	w.outage(worker, tries) // the second time it stays open for twice as long
	w.advance(50 * time.Second)
	w.modelIs(second, "")
	w.advance(11 * time.Second)
	w.rebuild()
	if tries = on("small"); len(tries) != 1 {
		t.Fatalf("%d try the model again", len(tries))
	}
	w.settle(worker, ok(tries[0]))
	if got := on("small"); len(got) != 1 {
		t.Fatalf("%d start on a model that works again", len(got))
	}
	w.rebuild()
	w.modelIs(w.submit(w.task(auto(0.8)))[0], "small")
}

// birch is the environment of a second tenant.
func (w *world) birch() (env int32) {
	w.t.Helper()
	w.do(&engine.Command{Configure: &engine.Configure{New: true, Action: "tenant.create", Tenant: &models.Tenant{ID: w.id(), Slug: "birch", Name: "Birch", Weight: 1, Timezone: "UTC"}}})
	for n := range w.engine.Board().Envs { // any order: there is one other
		if n != w.env {
			env = n
		}
	}
	return env
}

// Failures of one tenant say nothing to another, and neither do its judgements.
func TestTenantsLearnOfModelsApart(t *testing.T) {
	w := newWorld(t, engine.Config{})
	acorn, birch := w.env, w.birch()
	for name, usd := range map[string]int64{"small": 1, "large": 9} {
		w.model(name, usd, 0.9, func(m *models.Model) { m.Tenant = 0 })
	}
	worker := w.worker("shared", func(m *models.Worker) { m.Slots = 50 })
	for range 3 {
		w.submit(w.task(auto(0.8), func(t *engine.NewTask) { t.MaxAttempts = 1 }))
	}
	w.outage(worker, w.claim(worker, 3))
	w.modelIs(w.submit(w.task(auto(0.8)))[0], "large")
	w.env = birch
	w.modelIs(w.submit(w.task(auto(0.8)))[0], "small")
	w.model("small", 20, 0.9, func(m *models.Model) { m.Tenant = w.engine.Board().TenantOf(birch) })
	w.modelIs(w.submit(w.task(auto(0.8)))[0], "large") // its own entry wins for it
	w.env = acorn
	w.rebuild()
	w.advance(time.Minute)
	w.modelIs(w.submit(w.task(auto(0.8)))[0], "small")
	w.env = birch
	w.unmodel("small")
	w.modelIs(w.submit(w.task(auto(0.8)))[0], "small") // it sees the platform's again
}

// What runs goes along when a tenant gets a model of its own, or loses it: the platform's opens or fills for everybody else.
func TestWhatRunsGoesAlongToAnotherEntry(t *testing.T) {
	w := newWorld(t, engine.Config{})
	acorn, birch := w.env, w.birch()
	w.model("small", 1, 0.9, func(m *models.Model) { m.Tenant, m.MaxConcurrent = 0, most(1) })
	worker := w.worker("shared", func(m *models.Worker) { m.Slots = 50 })
	w.submit(w.task(named("small")))
	if got := w.claim(worker, 9); len(got) != 1 {
		t.Fatalf("%d start", len(got))
	}
	w.env = birch
	w.submit(w.task(named("small")), w.task(named("small")))
	if got := w.claim(worker, 9); len(got) != 0 {
		t.Fatalf("%d more start on a model that runs what it may", len(got))
	}
	w.env = acorn
	w.model("small", 1, 0.9)
	leases := w.claim(worker, 9)
	if len(leases) != 1 || leases[0].Row.Env != birch {
		t.Fatalf("%d start where another's task has gone over to a model of its own", len(leases))
	}
	w.unmodel("small")
	w.settle(worker, ok(leases[0]))
	if got := w.claim(worker, 9); len(got) != 0 {
		t.Fatalf("%d start on a model on which another's task runs again", len(got))
	}
}

func TestAResultThatIsNotGoodEnoughMovesToTheNextBetterModel(t *testing.T) {
	w := newWorld(t, engine.Config{})
	w.three()
	worker := w.worker("one", func(m *models.Worker) { m.Slots = 20 })
	id := w.submit(w.task(auto(0), func(t *engine.NewTask) { t.MaxAttempts = 4 }))[0]
	byName := w.submit(w.task(named("small"), func(t *engine.NewTask) { t.MaxAttempts = 1 }))[0]
	for i, name := range []string{"small", "middle", "large", "large"} {
		for _, l := range w.claim(worker, 5) {
			if l.Row.ID == id && l.Model != name {
				t.Fatalf("attempt %d runs on %s, want %s", i+1, l.Model, name)
			}
			w.settle(worker, failed(l, "quality_too_low"))
		}
		if i < 2 {
			w.advance(time.Second)
		} else {
			w.advance(time.Minute) // nothing is better: it waits as after any failure
		}
		w.rebuild()
	}
	w.want(id, models.DeadLetter)
	w.want(byName, models.DeadLetter)
	list := w.store.Choices(models.TaskRef{Env: w.env, ID: id})
	if len(list) != 3 || list[2].Chosen != "large" || fmt.Sprint(list[2].Failed) != "[small middle]" || list[1].Reason == "" {
		t.Errorf("kept of it: %+v", list)
	}
	if got, _ := w.modelOf(byName); got != "small" {
		t.Errorf("the one that named its model went to %s", got)
	}
}

func (w *world) judge(id models.ID, source string, score float64) {
	w.t.Helper()
	w.do(&engine.Command{Judge: &engine.Judge{Env: w.env, Task: id, Score: score, Source: source}})
}

func TestJudgementsTurnTheChoice(t *testing.T) {
	w := newWorld(t, engine.Config{})
	w.three()
	w.model("middle", 3, 0.9)
	worker := w.worker("one", func(m *models.Worker) { m.Slots = 20 })
	var last models.ID
	for n := 0; ; n++ {
		id := w.submit(w.task(auto(0.8)))[0]
		l := w.claim(worker, 1)[0]
		if l.Model != "middle" {
			if n < 5 || n > 20 {
				t.Fatalf("after %d poor results it runs on %s", n, l.Model)
			}
			w.settle(worker, ok(l))
			break
		}
		last = id
		r := ok(l)
		r.Usage = json.RawMessage(`{"tokens_in":1000,"tokens_out":100,"quality":0.1}`)
		w.settle(worker, r)
	}
	w.modelIs(w.submit(w.task(auto(0.8)))[0], "large")
	w.advance(11 * time.Second) // what was seen is saved
	w.engine = engine.New(engine.Config{})
	w.rebuild()
	w.modelIs(w.submit(w.task(auto(0.8)))[0], "large")
	for i := range 200 {
		w.judge(last, fmt.Sprint("reader ", i), 0)
		w.judge(last, fmt.Sprint("reader ", i), 1) // on second thoughts
	}
	w.modelIs(w.submit(w.task(auto(0.8)))[0], "middle")
	w.modelIs(w.submit(w.task(auto(0.8), func(t *engine.NewTask) { t.Class.Type = "other" }))[0], "middle")
}

func TestAModelRunsNoMoreThanItMay(t *testing.T) {
	w := newWorld(t, engine.Config{})
	worker := w.worker("one", func(m *models.Worker) { m.Slots, m.LeaseSeconds = 20, 300 })
	w.model("small", 1, 0.9, func(m *models.Model) { m.MaxConcurrent = most(2) })
	tokens := func(n int64) func(*engine.NewTask) {
		return func(t *engine.NewTask) { t.Tokens, t.Class.Tokens = n, true }
	}
	ids := w.submit(w.task(auto(0)), w.task(named("small")), w.task(named("small")), w.task(auto(0)))
	leases := w.claim(worker, 20)
	if len(leases) != 2 {
		t.Fatalf("%d run", len(leases))
	}
	w.rebuild()
	if got := w.claim(worker, 20); len(got) != 0 {
		t.Fatalf("%d more run after a rebuild", len(got))
	}
	if got := w.detail(ids[3], "model_unavailable"); !strings.Contains(got, "small runs 2 tasks, of at most 2") {
		t.Errorf("explained by %q", got)
	}
	w.settle(worker, ok(leases[0]))
	if got := w.claim(worker, 20); len(got) != 1 {
		t.Fatalf("%d run when one has ended", len(got))
	}
	w.model("small", 1, 0.9, func(m *models.Model) { m.TokensPerMinute = most(60) })
	if got := w.claim(worker, 20); len(got) != 1 {
		t.Fatalf("%d run without the limit", len(got))
	}
	wait := w.submit(w.task(named("small"), tokens(90)), w.task(auto(0), tokens(10)))
	if got := w.claim(worker, 20); len(got) != 1 { // into debt, and then nothing
		t.Fatalf("%d run", len(got))
	}
	if got := w.detail(wait[1], "rate_limit"); !strings.Contains(got, "small has used its 60 tokens a minute (30 are owed)") {
		t.Errorf("explained by %q", got)
	}
	w.advance(2 * time.Second)
	w.engine = engine.New(engine.Config{})
	w.rebuild()
	if got := w.claim(worker, 20); len(got) != 0 {
		t.Fatalf("%d run under another brain", len(got))
	}
	w.advance(40 * time.Second)
	if got := w.claim(worker, 20); len(got) != 1 {
		t.Fatalf("%d run when the debt is paid", len(got))
	}
}

func TestPricesFollowTheHourAndTheKind(t *testing.T) {
	w := newWorld(t, engine.Config{})
	w.model("steady", 5, 0.9)
	w.model("nightly", 9, 0.9, func(m *models.Model) {
		m.OffPeak = []models.OffPeak{{Window: models.Window{Cron: "0 22 * * *", DurationSeconds: 6 * 3600, Timezone: "UTC"}, Factor: 0.5}}
	})
	w.model("patient", 8, 0.9, func(m *models.Model) { m.BatchDiscount = 0.5 })
	watched := func(t *engine.NewTask) { t.Lane = "realtime" }
	w.modelIs(w.submit(w.task(auto(0.8), watched))[0], "steady") // 08:00
	w.modelIs(w.submit(w.task(auto(0.8)))[0], "patient")
	w.now = w.now.Add(15 * time.Hour) // 23:00
	w.modelIs(w.submit(w.task(auto(0.8), watched))[0], "nightly")
	w.modelIs(w.submit(w.task(auto(0.8)))[0], "patient")
	w.now = w.now.Add(6 * time.Hour)
	w.modelIs(w.submit(w.task(auto(0.8), watched))[0], "steady")
}

func TestARouteIsShownWithoutChangingAnything(t *testing.T) {
	w := newWorld(t, engine.Config{})
	w.three()
	route := func(a engine.RouteAsk) *engine.Routed {
		a.Tenant, a.Env, a.Type = w.tenant(), w.env, "work"
		return w.do(&engine.Command{Look: &engine.Look{Route: &a}}).Looked.Routed
	}
	if got := route(engine.RouteAsk{Ask: &models.ModelAsk{QualityTarget: 0.8}}); got.Chosen != "middle" || len(got.Ranking) != 3 || got.Ranking[0].Model != "middle" {
		t.Errorf("%+v", got)
	}
	if got := route(engine.RouteAsk{Ask: &models.ModelAsk{QualityTarget: 1}}); got.Chosen != "" || got.Reason == "" || len(got.Ranking) != 3 {
		t.Errorf("%+v", got)
	}
	if got := route(engine.RouteAsk{Named: "small", Tokens: 2_000}); got.Chosen != "small" || len(got.Ranking) != 1 || got.Ranking[0].CostMicro != 2_000 {
		t.Errorf("%+v", got)
	}
	if got := route(engine.RouteAsk{Named: "unheard"}); got.Chosen != "unheard" || len(got.Ranking) != 0 {
		t.Errorf("%+v", got)
	}
	dry := w.do(&engine.Command{Submit: &engine.Submit{Env: w.env, Tasks: []engine.NewTask{w.task(auto(0.9))}, Single: true, Dry: true}}).Submitted.Dry[0]
	if dry.Model != "large" || dry.EstimatedCost == nil || *dry.EstimatedCost != 1250*9 || dry.Class != 0 {
		t.Errorf("%+v", dry)
	}
	stats := w.do(&engine.Command{Look: &engine.Look{Models: most32(w.tenant())}}).Looked.Models
	if len(stats) != 3 || stats[0].Name != "large" || stats[0].Breaker != "closed" {
		t.Errorf("%+v", stats)
	}
}

func most32(n int32) *int32 { return &n }
