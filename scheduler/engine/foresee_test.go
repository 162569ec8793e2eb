package engine_test

import (
	"fmt"
	"testing"
	"time"

	"nightshift/models"
	"nightshift/models/storetest"
	"nightshift/scheduler/engine"
)

func feasible(f *engine.Foresight) string {
	if f == nil || f.Feasible == nil {
		return "unknown"
	}
	return fmt.Sprint(*f.Feasible)
}

func TestASubmitIsToldWhetherItsMomentCanBeKept(t *testing.T) {
	w := newWorld(t, engine.Config{})
	due := func(seconds int) func(*engine.NewTask) {
		return func(n *engine.NewTask) {
			n.EstimateMS, n.Deadline = 10_000, w.now.Add(time.Duration(seconds)*time.Second)
		}
	}
	within := func(seconds int32) func(*engine.NewTask) {
		return func(n *engine.NewTask) { n.ExpiresInSeconds = seconds }
	}
	foresee := func(change ...func(*engine.NewTask)) (told, dry string, start models.Instant) {
		task := w.task(change...)
		d := w.do(&engine.Command{Submit: &engine.Submit{Env: w.env, Tasks: []engine.NewTask{task}, Single: true, Dry: true}}).Submitted.Dry[0]
		made := w.do(&engine.Command{Submit: &engine.Submit{Env: w.env, Tasks: []engine.NewTask{task}, Single: true}}).Submitted.Tasks[0]
		if f := made.Foresight; f != nil {
			start = f.Start
			if start != d.EstimatedStart {
				t.Errorf("a dry run says it starts at %d, the submit at %d", d.EstimatedStart, start)
			}
		}
		return feasible(made.Foresight), feasible(&engine.Foresight{Feasible: d.Feasible}), start
	}
	says := func(want string, change ...func(*engine.NewTask)) models.Instant {
		t.Helper()
		told, dry, start := foresee(change...)
		if told != want || dry != want {
			t.Errorf("told %s, by a dry run %s, want %s", told, dry, want)
		}
		return start
	}

	says("unknown")            // it has no such moment
	says("unknown", due(60))   // nobody could run it
	says("false", due(5))      // it takes ten seconds: no worker changes that
	says("unknown", within(5)) // it may be that one comes
	w.advance(6 * time.Second)

	lane := w.engine.Board().LaneNamed(w.env, "io").Lane
	in := func(n *engine.NewTask) { n.Lane = "io" }
	box := w.worker("box", func(m *models.Worker) { m.Kinds = []models.KindName{models.IO}; m.Slots = 2 })
	if start := says("true", in, due(11)); start != w.now {
		t.Errorf("two slots are free, and it starts at %s", start.Sub(w.now))
	}
	says("true", in, within(1))
	leases := w.claim(box, 2)
	w.now = w.now.Add(30 * time.Second)
	for _, l := range leases { // so it is known that its like take half a minute
		w.settle(box, ok(l))
	}
	for range 4 {
		w.submit(w.task(in))
	}
	w.claim(box, 2) // two run, two wait
	if start := says("false", in, within(20)); start != w.now.Add(60*time.Second) {
		t.Errorf("behind two that wait it starts in %s", start.Sub(w.now))
	}
	says("false", in, due(60))
	says("true", in, within(3600))
	says("false", in, due(50), func(n *engine.NewTask) { n.RunAt = w.now.Add(45 * time.Second) })
	says("true", in, due(60), func(n *engine.NewTask) { n.RunAt = w.now.Add(45 * time.Second) })
	says("unknown", in, within(3600), func(n *engine.NewTask) { n.NeedsApproval = true })
	lane.Paused = true
	w.do(&engine.Command{Configure: &engine.Configure{Lane: &lane, Action: "lane.pause"}})
	says("unknown", in, within(3600))
	says("false", in, due(5))
}

func TestATaskThatStartsWithItsSubmitIsInTime(t *testing.T) {
	w := newWorld(t, engine.Config{})
	box := w.worker("box")
	for _, change := range []func(*engine.NewTask){
		func(n *engine.NewTask) { n.ExpiresInSeconds = 1 },
		func(n *engine.NewTask) { n.EstimateMS, n.Deadline = 1000, w.now.Add(2*time.Second) },
	} {
		w.do(&engine.Command{Claim: &engine.Claim{Worker: box.ID, Session: box.Session, Most: 1, Until: w.now.Add(time.Second)}})
		task := w.task(change)
		made := w.do(&engine.Command{Submit: &engine.Submit{Env: w.env, Tasks: []engine.NewTask{task}, Single: true}}).Submitted.Tasks[0]
		if made.Row.State != models.Running || feasible(made.Foresight) != "true" || made.Foresight.Start != w.now {
			t.Errorf("it is %s, in time: %s", made.Row.State, feasible(made.Foresight))
		}
	}
	w.do(&engine.Command{Claim: &engine.Claim{Worker: box.ID, Session: box.Session, Most: 1, Until: w.now.Add(time.Second)}})
	late := w.task(func(n *engine.NewTask) { n.EstimateMS, n.Deadline = 10_000, w.now.Add(time.Second) })
	if made := w.do(&engine.Command{Submit: &engine.Submit{Env: w.env, Tasks: []engine.NewTask{late}, Single: true}}).Submitted.Tasks[0]; feasible(made.Foresight) != "false" {
		t.Errorf("ten seconds of work in one are called feasible: %s", feasible(made.Foresight))
	}
}

// Behind others of its own a task starts at the pace of its tenant's share: what other tenants have for the same workers
// takes the rest.
func TestAnEstimateCountsWhatOtherTenantsWant(t *testing.T) {
	w := worldOn(t, engine.Config{}, storetest.Lone)
	box := w.worker("box", func(m *models.Worker) { m.Slots = 2 })
	first := w.submit(w.task(), w.task())
	leases := w.claim(box, 2)
	w.now = w.now.Add(30 * time.Second)
	for _, l := range leases { // its like take half a minute
		w.settle(box, ok(l))
	}
	_ = first
	w.submit(w.task(), w.task(), w.task(), w.task())
	w.claim(box, 2) // two run, two wait
	start := func() time.Duration {
		t.Helper()
		f := w.do(&engine.Command{Submit: &engine.Submit{Env: w.env, Tasks: []engine.NewTask{w.task(func(n *engine.NewTask) { n.ExpiresInSeconds = 3600 })}, Single: true, Dry: true}}).Submitted.Dry[0]
		return f.EstimatedStart.Sub(w.now)
	}
	alone := start()
	if alone != 60*time.Second {
		t.Errorf("alone it starts in %s: two rounds of two slots", alone)
	}
	other := w.do(&engine.Command{Configure: &engine.Configure{New: true, Action: "tenant.create", Tenant: &models.Tenant{ID: w.id(), Slug: "birch", Name: "Birch", Weight: 3, Timezone: "UTC"}}}).Tenant.Number
	for _, env := range w.engine.Board().Envs {
		if env.Tenant == other {
			w.do(&engine.Command{Submit: &engine.Submit{Env: env.Env, Tasks: []engine.NewTask{w.task(), w.task()}, InBatch: true}})
		}
	}
	if beside := start(); beside != 6*30*time.Second {
		t.Errorf("with a quarter of two slots three tasks start in %s, not six rounds", beside)
	}
}

func TestAnEstimateCountsRates(t *testing.T) {
	w := worldOn(t, engine.Config{}, storetest.Lone)
	w.worker("box", func(m *models.Worker) { m.Slots = 50 })
	w.do(&engine.Command{Configure: &engine.Configure{Rate: &models.RateLimit{Env: w.env, Key: "bank", Limit: 1, PerSeconds: 10, Burst: 1}, Action: "rate_limit.put"}})
	for i, want := range []time.Duration{0, 10 * time.Second, 20 * time.Second} {
		task := w.task(rated("bank"), func(n *engine.NewTask) { n.ExpiresInSeconds = 15 })
		dry := w.do(&engine.Command{Submit: &engine.Submit{Env: w.env, Tasks: []engine.NewTask{task}, Single: true, Dry: true}}).Submitted.Dry[0]
		made := w.do(&engine.Command{Submit: &engine.Submit{Env: w.env, Tasks: []engine.NewTask{task}, Single: true}}).Submitted.Tasks[0].Foresight
		if got := made.Start.Sub(w.now); got != want || made.Start != dry.EstimatedStart || feasible(made) != fmt.Sprint(want <= 15*time.Second) {
			t.Errorf("the %d. of one in ten seconds starts in %s (%s by a dry run), in time: %s", i+1, got, dry.EstimatedStart.Sub(w.now), feasible(made))
		}
	}
}

// What waits for a rate is not said to start before that lets it.
func TestWhatARateHoldsBackIsExplainedWithItsMoment(t *testing.T) {
	w := worldOn(t, engine.Config{}, storetest.Lone)
	box := w.worker("box", func(m *models.Worker) { m.Slots = 50 })
	w.do(&engine.Command{Configure: &engine.Configure{Rate: &models.RateLimit{Env: w.env, Key: "bank", Limit: 1, PerSeconds: 10, Burst: 1}, Action: "rate_limit.put"}})
	w.model("small", 1, 0.9, func(m *models.Model) { m.TokensPerMinute = most(60) })
	start := func(id models.ID) time.Duration {
		t.Helper()
		return w.do(&engine.Command{Look: &engine.Look{Explain: &models.TaskRef{Env: w.env, ID: id}}}).Looked.Explain.EstimatedStart.Sub(w.now)
	}
	for name, change := range map[string]func(*engine.NewTask){
		"a rate": rated("bank"),
		"a model's tokens": func(n *engine.NewTask) {
			named("small")(n)
			n.Tokens, n.Class.Tokens = 70, true
		},
	} {
		ids := w.submit(w.task(change), w.task(change))
		if got := w.claim(box, 9); len(got) != 1 {
			t.Fatalf("%s lets %d start", name, len(got))
		}
		if got := start(ids[1]); got < 9*time.Second || got > 12*time.Second {
			t.Errorf("what %s holds back is said to start in %s", name, got)
		}
	}
}

// The slots of a worker that nobody has heard of for as long as its leases last are no capacity; one that waits in a claim is there.
func TestASilentWorkerIsNoCapacity(t *testing.T) {
	w := worldOn(t, engine.Config{}, storetest.Lone)
	box := w.worker("box", func(m *models.Worker) { m.Slots, m.LeaseSeconds = 1, 3600 })
	w.worker("dead", func(m *models.Worker) { m.Slots = 50 })
	start := func() time.Duration {
		t.Helper()
		return w.do(&engine.Command{Submit: &engine.Submit{Env: w.env, Tasks: []engine.NewTask{w.task(func(n *engine.NewTask) { n.ExpiresInSeconds = 3600 })}, Single: true, Dry: true}}).Submitted.Dry[0].EstimatedStart.Sub(w.now)
	}
	w.submit(w.task(func(n *engine.NewTask) { n.HardSeconds = 3600 }))
	w.claim(box, 1)
	if got := start(); got != 0 {
		t.Fatalf("with 50 slots free a task starts in %s", got)
	}
	w.advance(40 * time.Second)
	if got := start(); got <= 0 {
		t.Errorf("with the slots of a silent worker alone a task starts in %s", got)
	}
}
