package engine_test

import (
	"slices"
	"testing"
	"time"

	"nightshift/models"
	"nightshift/models/storetest"
	"nightshift/scheduler/engine"
)

// half takes half of a worker for hours.
func half(t *engine.NewTask) {
	t.Class.CPUMilli, t.EstimateMS, t.HardSeconds = 4000, 7_200_000, 100_000
}

// whole takes all of one for a minute.
func whole(t *engine.NewTask) { t.Class.CPUMilli, t.EstimateMS = 8000, 60_000 }

// alive lets time pass in which every worker but those named says that it lives.
func (w *world) alive(d time.Duration, but ...string) {
	w.t.Helper()
	w.now = w.now.Add(d)
	for _, row := range w.workers() {
		if slices.Contains(but, row.Name) {
			continue
		}
		var beats []engine.Beat
		for _, l := range row.Leases {
			beats = append(beats, engine.Beat{Token: l.Row().Token, Task: models.TaskRef{Env: l.Row().Env, ID: l.Row().ID}})
		}
		w.do(&engine.Command{Heartbeat: &engine.Heartbeat{Worker: row.ID, Session: row.Session, Leases: beats}})
	}
	w.advance(2 * time.Second)
}

// A task that needs a whole worker while others fill its gaps gets one kept for it, whatever else there is that only looks as
// if it had room, or as if the task could not start anyway.
func TestATooBigTaskGetsAWorkerKept(t *testing.T) {
	patient := func(m *models.Worker) { m.LeaseSeconds = 300 }
	for name, c := range map[string]struct {
		begin  func(w *world)
		filler func(*engine.NewTask) // the rest of the worker is filled with
		mute   string
	}{
		"beside fillers alone":                       {},
		"and another worker of another lane is idle": {begin: func(w *world) { w.worker("aside", patient, func(m *models.Worker) { m.Lanes = []string{"compute"} }) }},
		"and another tenant's worker is idle": {begin: func(w *world) {
			answer := w.do(&engine.Command{Configure: &engine.Configure{New: true, Tenant: &models.Tenant{ID: w.id(), Slug: "birch", Name: "Birch", Weight: 1, Timezone: "UTC"}}})
			w.worker("theirs", patient, func(m *models.Worker) { m.Tenant = answer.Tenant.Number })
		}},
		"and an idle worker is silent":           {begin: func(w *world) { w.worker("mute", patient) }, mute: "mute"},
		"and the gaps are filled by other kinds": {filler: in("compute")},
		"and its lane is at its limit":           {begin: func(w *world) { w.lane(func(l *models.Lane) { l.MaxConcurrent = 2 }) }},
		"and its tenant is at its limit":         {begin: func(w *world) { w.quotas(func(q *models.Quotas) { q.MaxConcurrent = most(2) }) }},
		"and its type is at its limit":           {begin: func(w *world) { w.taskType(models.TaskType{Type: "work", MaxConcurrent: most(2)}) }},
	} {
		t.Run(name, func(t *testing.T) {
			w := worldOn(t, engine.Config{}, storetest.Lone)
			worker := w.worker("one", patient)
			filler := func(*engine.NewTask) {}
			if c.filler != nil {
				filler = c.filler
			}
			w.submit(w.task(half, filler))
			long := w.claim(worker, 1)
			big := w.submit(w.task(whole))[0]
			w.now = w.now.Add(time.Second)
			if c.begin != nil {
				c.begin(w)
			}
			w.submit(w.task(filler))
			short := w.claim(worker, 1) // it fills the gap
			if len(long) != 1 || len(short) != 1 || short[0].Row.ID == big {
				t.Fatalf("%d and %d started", len(long), len(short))
			}
			w.alive(35*time.Minute, c.mute)
			passer := w.submit(w.task(half, in("io"), func(n *engine.NewTask) { n.Class.Type = "other" }))[0]
			if c.begin == nil || w.engine.Board().UseOf(w.tenant()).Quotas.MaxConcurrent == nil {
				w.detail(passer, "reserved_for")
			}
			w.settle(worker, ok(long[0]))
			if got := w.claim(worker, 1); len(got) != 1 || got[0].Row.ID != big {
				t.Fatalf("started is %v, the one that the worker was kept for is %x", got, big)
			}
		})
	}
}

// What a worker is kept for gets the next place under a limit too, as soon as the worker has room: elsewhere nothing takes it.
func TestAKeptTaskGetsThePlaceUnderItsLimit(t *testing.T) {
	for name, limit := range map[string]func(w *world){
		"lane":   func(w *world) { w.lane(func(l *models.Lane) { l.MaxConcurrent = 2 }) },
		"tenant": func(w *world) { w.quotas(func(q *models.Quotas) { q.MaxConcurrent = most(2) }) },
		"type":   func(w *world) { w.taskType(models.TaskType{Type: "work", MaxConcurrent: most(2)}) },
	} {
		t.Run(name, func(t *testing.T) {
			w := worldOn(t, engine.Config{}, storetest.Lone)
			limit(w)
			patient := func(m *models.Worker) { m.LeaseSeconds = 300 }
			worker := w.worker("one", patient)
			w.submit(w.task(half))
			long := w.claim(worker, 1)
			big := w.submit(w.task(whole))[0]
			w.now = w.now.Add(time.Second)
			w.submit(w.task(), w.task(), w.task())
			w.settle(worker, ok(w.claim(worker, 1)[0])) // it filled the gap
			other := w.worker("two", patient, func(m *models.Worker) { m.CPUMilli = 1000 })
			first := w.claim(other, 1)
			w.alive(35 * time.Minute)
			w.settle(worker, ok(long[0]))
			if got := w.claim(other, 1); len(got) != 0 {
				t.Fatalf("the last place went to %x", got[0].Row.ID)
			}
			if got := w.claim(worker, 1); len(got) != 1 || got[0].Row.ID != big {
				t.Fatalf("started is %v, the one that the worker was kept for is %x", got, big)
			}
			w.settle(other, ok(first[0]))
			if got := w.claim(other, 1); len(got) != 1 {
				t.Error("the rest does not go on")
			}
		})
	}
}
