package engine_test

import (
	"encoding/json"
	"fmt"
	"math"
	"testing"
	"time"

	"nightshift/models"
	"nightshift/models/storetest"
	"nightshift/scheduler/engine"
)

func (w *world) stats() *engine.Stats {
	w.t.Helper()
	return w.do(&engine.Command{Look: &engine.Look{Stats: true}}).Looked.Stats
}

func counts(s *engine.Stats, name string) (all engine.TypeCounts) {
	for _, c := range s.Types {
		if c.Type == name {
			return c
		}
	}
	return all
}

func TestTasksAreCountedByKindAndType(t *testing.T) {
	w := newWorld(t, engine.Config{})
	worker := w.worker("one", func(row *models.Worker) { row.GPUs = []models.GPUCard{{VRAMMB: 100}, {VRAMMB: 100}} })
	typed := func(name string) func(*engine.NewTask) { return func(n *engine.NewTask) { n.Class.Type = name } }
	w.submit(w.task(typed("good")), w.task(typed("bad")), w.task(typed("big"), func(n *engine.NewTask) { n.Class.GPU, n.Class.VRAMMB = 1, 50 }))
	w.advance(3 * time.Second)
	leases := w.claim(worker, 3)
	if pool := w.stats().Pools[0]; pool.Pool != "cpu" || pool.Slots != 4 || pool.SlotsBusy != 3 || pool.Cards != 2 || pool.CardsBusy != 1 {
		t.Errorf("the pool: %+v", pool)
	}
	w.advance(2 * time.Second)
	for _, l := range leases {
		r := ok(l)
		switch l.Type {
		case "bad":
			r = failed(l, "network")
		case "good":
			r.Usage = json.RawMessage(`{"model":"owl","tokens_in":5,"tokens_out":7,"tokens_cached":2,"cost_usd":0.25}`)
		}
		w.settle(worker, r)
	}
	waits := w.submit(w.task(typed("good"), func(n *engine.NewTask) { n.ExpiresInSeconds = 2 }), w.task(typed("good")))
	w.do(&engine.Command{Cancel: &engine.Cancel{Env: w.env, Task: waits[1]}})
	w.advance(3 * time.Second)
	s := w.stats()
	if got, want := counts(s, "good"), (engine.TypeCounts{Kind: "batch", Type: "good", Submitted: 3, Started: 1, Succeeded: 1, Expired: 1, Cancelled: 1}); got != want {
		t.Errorf("good: %+v, want %+v", got, want)
	}
	if got, want := counts(s, "bad"), (engine.TypeCounts{Kind: "batch", Type: "bad", Submitted: 1, Started: 1, Retried: 1}); got != want {
		t.Errorf("bad: %+v, want %+v", got, want)
	}
	if len(s.Models) != 1 || s.Models[0] != (engine.ModelUse{Model: "owl", TokensIn: 5, TokensOut: 7, TokensCached: 2, CostUSD: 0.25}) {
		t.Errorf("models: %+v", s.Models)
	}
	batch := s.Kinds[models.Batch]
	if batch.Wait.Count != 3 || math.Abs(batch.Wait.Sum-9) > 0.1 || batch.Run.Count != 3 || math.Abs(batch.Run.Sum-6) > 0.1 {
		t.Errorf("waits %+v, runs %+v", batch.Wait, batch.Run)
	}
}

func TestCausesOfLostLeasesAreCounted(t *testing.T) {
	w := newWorld(t, engine.Config{})
	worker := w.worker("one")
	w.submit(w.task(), w.task(func(n *engine.NewTask) { n.HardSeconds = 10 }), w.task())
	leases := w.claim(worker, 3)
	w.do(&engine.Command{Return: &engine.Return{Tokens: []models.ID{leases[2].Row.Token}}})
	w.advance(31 * time.Second)
	late := ok(leases[0])
	late.Usage = json.RawMessage(`{"model":"owl","tokens_in":5}`)
	w.settle(worker, late)
	w.settle(worker, late)
	w.claim(worker, 1)
	w.do(&engine.Command{Retire: &engine.Retire{Worker: worker.ID, Session: worker.Session, Gone: true}})
	s := w.stats()
	for cause, want := range map[string]int64{"silent": 1, "timed_out": 1, "undelivered": 1, "worker_gone": 1, "replaced": 0, "never_arrived": 0} {
		if s.LeasesLost[cause] != want {
			t.Errorf("%d lost as %s, want %d", s.LeasesLost[cause], cause, want)
		}
	}
	if len(s.Models) != 1 || s.Models[0].TokensIn != 5 {
		t.Errorf("late usage counts once: %+v", s.Models)
	}
}

func TestWhatIsNotCommittedIsNotCounted(t *testing.T) {
	w := newWorld(t, engine.Config{})
	cmd := &engine.Command{ID: w.id(), Submit: &engine.Submit{Env: w.env, Tasks: []engine.NewTask{w.task()}}}
	facts, err := w.store.Facts(w.ctx, w.engine.Need([]*engine.Command{cmd}))
	w.must(err)
	w.engine.Decide(w.batch+1, w.epoch, facts, []*engine.Command{cmd})
	w.rebuild() // as after a transaction that failed
	w.submit(w.task())
	if got := counts(w.stats(), "work").Submitted; got != 1 {
		t.Fatalf("%d submitted, one was committed", got)
	}
}

func TestLanesAreSummedOverEnvironments(t *testing.T) {
	w := newWorld(t, engine.Config{})
	w.do(&engine.Command{Configure: &engine.Configure{New: true, Action: "lane.create", Lane: &models.Lane{Env: w.env, Name: "digest", Kind: models.IO, Weight: 1}}})
	other := w.do(&engine.Command{Configure: &engine.Configure{New: true, Tenant: &models.Tenant{ID: w.id(), Slug: "birch", Name: "Birch", Weight: 1, Timezone: "UTC"}}}).Tenant.Number
	w.submit(w.task(), w.task(func(n *engine.NewTask) { n.Lane = "digest" }))
	w.advance(4 * time.Second)
	for _, env := range w.engine.Board().Envs {
		if env.Tenant == other {
			w.do(&engine.Command{Submit: &engine.Submit{Env: env.Env, Tasks: []engine.NewTask{w.task()}}})
		}
	}
	w.submit(w.task(func(n *engine.NewTask) { n.LimitKey, n.KeyLimit = "one", 1 }), w.task(func(n *engine.NewTask) { n.LimitKey, n.KeyLimit = "one", 1 }))
	s := w.stats()
	if len(s.Lanes) != 8 {
		t.Fatalf("%d lanes", len(s.Lanes))
	}
	for _, l := range s.Lanes {
		want := engine.LaneFigures{Kind: l.Kind, Lane: l.Lane}
		switch l.Kind + "/" + l.Lane {
		case "batch/batch":
			want.Depth, want.Oldest = 4, 4
		case "io/other":
			want.Depth, want.Oldest = 1, 4
		}
		if l.Depth != want.Depth || math.Abs(l.Oldest-want.Oldest) > 0.1 {
			t.Errorf("%+v, want %+v", l, want)
		}
	}
	if k := s.Kinds[models.Batch]; k.Ready != 3 || k.Parked != 1 {
		t.Errorf("batch: %+v", k)
	}
}

func TestTheLagOfAPoolIsBetweenThoseWhoWait(t *testing.T) {
	w := newWorld(t, engine.Config{})
	worker := w.worker("one", func(row *models.Worker) { row.Slots = 1 })
	w.submit(w.task(), w.task())
	l := w.claim(worker, 1)
	w.advance(20 * time.Second)
	w.settle(worker, ok(l[0]))
	if lag := w.stats().Pools[0].Lag; lag != 0 {
		t.Errorf("one tenant alone lags by %f", lag)
	}
	other := w.do(&engine.Command{Configure: &engine.Configure{New: true, Tenant: &models.Tenant{ID: w.id(), Slug: "birch", Name: "Birch", Weight: 1, Timezone: "UTC"}}}).Tenant.Number
	for _, env := range w.engine.Board().Envs {
		if env.Tenant == other {
			w.do(&engine.Command{Submit: &engine.Submit{Env: env.Env, Tasks: []engine.NewTask{w.task()}}})
		}
	}
	if lag := w.stats().Pools[0].Lag; lag < 10 || lag > 30 {
		t.Errorf("the lag is %f after one of two got 20 s", lag)
	}
}

func TestOnlyTheBusiestTypesAreShown(t *testing.T) {
	w := worldOn(t, engine.Config{}, storetest.Lone)
	worker := w.worker("one", func(row *models.Worker) { row.Slots, row.CPUMilli = 100, 1_000_000 })
	life := func(first, times int) {
		for range times {
			tasks := make([]engine.NewTask, 100)
			for i := range tasks {
				tasks[i] = w.task(func(n *engine.NewTask) { n.Class.Type = fmt.Sprintf("type-%03d", first+i) })
			}
			w.submit(tasks...)
			var results []engine.Result
			for _, l := range w.claim(worker, 100) {
				results = append(results, ok(l))
			}
			w.settle(worker, results...)
			w.advance(time.Second)
		}
	}
	for first := 0; first < 1000; first += 100 {
		life(first, 1)
	}
	check := func(total int64, busy bool) {
		t.Helper()
		s := w.stats()
		names, sum := map[string]bool{}, int64(0)
		for _, c := range s.Types {
			names[c.Type] = true
			sum += c.Succeeded
		}
		if len(names) != 201 || !names["other"] || names["type-950"] != busy || s.Counters["succeeded"] != total {
			t.Fatalf("%d names, type-950 %v, %d succeeded of %d", len(names), names["type-950"], s.Counters["succeeded"], total)
		}
		if !busy && sum != total {
			t.Fatalf("%d counted of %d", sum, total)
		}
	}
	check(1000, false)
	life(900, 20)
	other := counts(w.stats(), "other").Succeeded
	w.advance(5 * time.Minute)
	w.do(&engine.Command{Heartbeat: &engine.Heartbeat{Worker: worker.ID, Session: worker.Session, All: true}})
	w.stats() // finds the busiest anew
	life(900, 1)
	check(3100, true)
	s := w.stats()
	if own, rest := counts(s, "type-950").Succeeded, counts(s, "other").Succeeded; own != 1 || rest != other {
		t.Fatalf("type-950 has %d of its own, the others went from %d to %d", own, other, rest)
	}
}

// BenchmarkStats is what a sample costs a brain with many tenants.
func BenchmarkStats(b *testing.B) {
	e := engine.New(engine.Config{})
	now := models.Instant(1_800_000_000_000_000)
	snapshot := &models.Snapshot{Now: now, Kinds: models.DefaultKinds(), Classes: []models.Class{{Number: 1, Type: "work"}}}
	for n := range int32(10_000) {
		snapshot.Tenants = append(snapshot.Tenants, models.Tenant{Number: n + 1, Weight: 1})
		snapshot.Environments = append(snapshot.Environments, models.Environment{Env: n + 1, Tenant: n + 1, Name: "production"})
		for k := range int32(4) {
			snapshot.Lanes = append(snapshot.Lanes, models.Lane{Number: 4*n + k + 1, Env: n + 1, Kind: models.KindName(k), Name: models.KindName(k).String(), First: true, Weight: 1})
		}
	}
	e.Rebuild(snapshot)
	batch, serial := int64(0), 0
	decide := func(cmd *engine.Command) []engine.Reply {
		batch++
		e.Need([]*engine.Command{cmd})
		_, replies := e.Decide(batch, 1, &models.Facts{Now: now}, []*engine.Command{cmd})
		e.Commit(&models.Effects{})
		return replies
	}
	for n := range int32(10_000) {
		serial++
		id := models.NewID(now, [10]byte{byte(serial >> 16), byte(serial >> 8), byte(serial)})
		decide(&engine.Command{Submit: &engine.Submit{Env: n + 1, Tasks: []engine.NewTask{{ID: id, Class: models.Class{Type: "work"}, MaxAttempts: 3, Input: json.RawMessage(`{}`)}}}})
	}
	b.ReportAllocs()
	b.ResetTimer()
	for range b.N {
		if s := decide(&engine.Command{Look: &engine.Look{Stats: true}})[0].Answer.Looked.Stats; s.Lanes[6].Depth != 10_000 {
			b.Fatalf("%+v", s.Lanes)
		}
	}
}
