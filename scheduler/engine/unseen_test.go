package engine_test

import (
	"math"
	"testing"
	"time"

	"nightshift/models"
	"nightshift/scheduler/engine"
)

// charged is what each tenant's account in the only pool stands at: virtual time × weight, as a new brain would read it.
func (w *world) virtual(tenant int32) float64 {
	for _, v := range w.engine.Board().Virtuals() {
		if v.Tenant == tenant {
			return v.Time
		}
	}
	return 0
}

// A brain is killed with three leases of one tenant and one of the other running, and the next comes a minute later, or
// the same process loses its database for that long. The minute is nobody's: what is charged, told and learned is the time
// a brain saw. Nor is what the brain before had saved charged again.
func TestAnOutageIsChargedToNobody(t *testing.T) {
	for name, another := range map[string]bool{"another brain": true, "the same brain": false} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, engine.Config{})
			other := w.do(&engine.Command{Configure: &engine.Configure{New: true, Action: "tenant.create", Tenant: &models.Tenant{ID: w.id(), Slug: "birch", Name: "Birch", Weight: 1, Timezone: "UTC"}}})
			envs := []int32{w.env, 0}
			for _, env := range w.engine.Board().Envs {
				if env.Tenant == other.Tenant.Number {
					envs[1] = env.Env
				}
			}
			tenants := []int32{w.engine.Board().TenantOf(w.env), other.Tenant.Number}
			for i, n := range []int{3, 1} {
				tasks := make([]engine.NewTask, n)
				for j := range tasks {
					tasks[j] = w.task()
				}
				w.do(&engine.Command{Submit: &engine.Submit{Env: envs[i], Tasks: tasks}})
			}
			box := w.worker("box", func(m *models.Worker) { m.Slots, m.LeaseSeconds = 4, 300 })
			leases := w.claim(box, 4)
			w.advance(25 * time.Second) // saved at ten and twenty, as everything else is in the end
			w.now = w.now.Add(time.Minute)
			if another {
				w.engine = engine.New(engine.Config{})
			}
			w.rebuild()
			w.advance(5 * time.Second)
			for _, l := range leases {
				w.settle(box, ok(l))
			}
			for _, l := range leases {
				ran := 0.0
				for _, a := range w.store.Attempts(models.TaskRef{Env: l.Row.Env, ID: l.Row.ID}) {
					ran += float64(a.ChargedMS) / 1000 * 4 // a quarter of the pool each
				}
				if ran < 25 || ran > 35 {
					t.Errorf("an attempt of 30 s before eyes is told as %.1f s", ran)
				}
			}
			for i, want := range []float64{3 * 30 / 4, 30 / 4} {
				if got := w.virtual(tenants[i]); math.Abs(got-want) > want/4 {
					t.Errorf("tenant %d was charged %.1f s, not about %.1f", i, got, want)
				}
			}
		})
	}
}

// A soft timeout is told once a start, whoever decides; one that came while nobody did is told by the next brain.
func TestASoftTimeoutIsToldOnceOverATakeover(t *testing.T) {
	w := newWorld(t, engine.Config{})
	told := map[models.ID]int{}
	w.saw = func(p *models.Plan) {
		for i := range p.Events {
			if p.Events[i].Name == "task.soft_timeout" {
				told[p.Events[i].Task]++
			}
		}
	}
	soft := func(seconds int32) func(*engine.NewTask) {
		return func(t *engine.NewTask) { t.SoftSeconds = seconds }
	}
	before, between, after := w.submit(w.task(soft(5)))[0], w.submit(w.task(soft(20)))[0], w.submit(w.task(soft(60)))[0]
	box := w.worker("box", func(m *models.Worker) { m.LeaseSeconds = 300 })
	leases := w.claim(box, 3)
	w.advance(10 * time.Second)
	w.submit(w.task()) // a brain is known to have lived until now
	w.now = w.now.Add(20 * time.Second)
	w.takeOver()
	w.advance(5 * time.Second)
	if told[before] != 1 || told[between] != 1 || told[after] != 0 {
		t.Fatalf("told %d, %d and %d times after 5, 20 and 60 s, when 35 are over", told[before], told[between], told[after])
	}
	for _, beat := range w.do(&engine.Command{Heartbeat: &engine.Heartbeat{Worker: box.ID, Session: box.Session, All: true, Leases: []engine.Beat{
		{Token: leases[0].Row.Token}, {Token: leases[1].Row.Token}, {Token: leases[2].Row.Token},
	}}}).Beaten.Leases {
		if late := beat.Row.ID != after; !beat.OK || (len(beat.Signals) == 1) != late {
			t.Errorf("its worker hears %v", beat.Signals)
		}
	}
	w.advance(30 * time.Second)
	if told[before] != 1 || told[between] != 1 || told[after] != 1 {
		t.Errorf("told %v", told)
	}
}
