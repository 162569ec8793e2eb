package engine_test

import (
	"encoding/json"
	"testing"
	"time"

	"nightshift/models"
	"nightshift/scheduler/engine"
)

// names counts the events of a task or workflow, or of a worker, by name.
func (w *world) names(of models.ID) map[string]int {
	out := map[string]int{}
	for _, e := range w.store.Events() {
		if e.Task == of || e.Task.IsZero() && e.Workflow == of || e.Worker == of && e.Task.IsZero() {
			out[e.Name]++
		}
	}
	return out
}

// TestEachEventIsWrittenOnceAtItsMoment goes through the names that callers know. Each story makes what the name tells of
// happen, and answers whose events are looked at; before its last step the event must not be there.
func TestEachEventIsWrittenOnceAtItsMoment(t *testing.T) {
	type story struct {
		name string
		tell func(w *world, worker models.Worker, look func(of models.ID)) models.ID
	}
	one := func(change ...func(*engine.NewTask)) func(w *world) models.ID {
		return func(w *world) models.ID { return w.submit(w.task(change...))[0] }
	}
	flow := func(w *world, change ...func(*engine.NewTask)) (flow, task models.ID) {
		n := w.task(append(change, func(t *engine.NewTask) { t.Key = "a" })...)
		flow = w.id()
		w.do(&engine.Command{Submit: &engine.Submit{Env: w.env, Tasks: []engine.NewTask{n}, Workflow: &engine.NewWorkflow{ID: flow, Name: "f", Input: json.RawMessage(`{}`)}}})
		return flow, n.ID
	}
	settled := func(class string) func(w *world, worker models.Worker, look func(models.ID)) models.ID {
		return func(w *world, worker models.Worker, look func(models.ID)) models.ID {
			id := one()(w)
			lease := w.claim(worker, 1)[0]
			look(id)
			if class == "" {
				w.settle(worker, ok(lease))
			} else {
				w.settle(worker, failed(lease, class))
			}
			return id
		}
	}
	for _, s := range []story{
		{"task.created", func(w *world, _ models.Worker, _ func(models.ID)) models.ID { return one()(w) }},
		{"task.started", func(w *world, worker models.Worker, look func(models.ID)) models.ID {
			id := one()(w)
			look(id)
			w.claim(worker, 1)
			return id
		}},
		{"task.ready", func(w *world, _ models.Worker, look func(models.ID)) models.ID {
			id := one(func(t *engine.NewTask) { t.DelaySeconds = 5 })(w)
			look(id)
			w.advance(7 * time.Second)
			return id
		}},
		{"task.progress", func(w *world, worker models.Worker, look func(models.ID)) models.ID {
			id := one()(w)
			lease := w.claim(worker, 1)[0]
			look(id)
			w.do(&engine.Command{Heartbeat: &engine.Heartbeat{Worker: worker.ID, Session: worker.Session, All: true, Leases: []engine.Beat{{Token: lease.Row.Token, Progress: json.RawMessage(`1`)}}}})
			return id
		}},
		{"task.soft_timeout", func(w *world, worker models.Worker, look func(models.ID)) models.ID {
			id := one(func(t *engine.NewTask) { t.SoftSeconds, t.HardSeconds = 3, 600 })(w)
			w.claim(worker, 1)
			look(id)
			w.advance(8 * time.Second)
			return id
		}},
		{"task.succeeded", settled("")},
		{"task.retrying", settled("network")},
		{"task.dead_lettered", settled("invalid_input")},
		{"task.failed", func(w *world, worker models.Worker, look func(models.ID)) models.ID {
			id := one(func(t *engine.NewTask) { t.FailWhenSpent = true })(w)
			lease := w.claim(worker, 1)[0]
			look(id)
			w.settle(worker, failed(lease, "invalid_input"))
			return id
		}},
		{"task.redriven", func(w *world, worker models.Worker, look func(models.ID)) models.ID {
			id := settled("invalid_input")(w, worker, func(models.ID) {})
			look(id)
			w.do(&engine.Command{ID: w.id(), Redrive: &engine.Redrive{Env: w.env, Task: id}})
			return id
		}},
		{"task.cancel_requested", func(w *world, worker models.Worker, look func(models.ID)) models.ID {
			id := one()(w)
			w.claim(worker, 1)
			look(id)
			w.do(&engine.Command{ID: w.id(), Cancel: &engine.Cancel{Env: w.env, Task: id}})
			return id
		}},
		{"task.cancelled", func(w *world, _ models.Worker, look func(models.ID)) models.ID {
			id := one()(w)
			look(id)
			w.do(&engine.Command{ID: w.id(), Cancel: &engine.Cancel{Env: w.env, Task: id}})
			return id
		}},
		{"task.expired", func(w *world, _ models.Worker, look func(models.ID)) models.ID {
			id := one(func(t *engine.NewTask) { t.ExpiresInSeconds = 5 })(w)
			look(id)
			w.advance(7 * time.Second)
			return id
		}},
		{"task.skipped", func(w *world, _ models.Worker, look func(models.ID)) models.ID {
			_, id := flow(w)
			look(id)
			w.do(&engine.Command{ID: w.id(), Skip: &engine.Skip{Env: w.env, Task: id, Reason: "no"}})
			return id
		}},
		{"task.released", func(w *world, worker models.Worker, look func(models.ID)) models.ID {
			id := one()(w)
			r := ok(w.claim(worker, 1)[0])
			look(id)
			r.Outcome, r.Result = models.AttemptReleased, nil
			w.settle(worker, r)
			return id
		}},
		{"task.parked", func(w *world, worker models.Worker, look func(models.ID)) models.ID {
			flow, id := flow(w)
			look(id)
			w.do(&engine.Command{ID: w.id(), Steer: &engine.Steer{Env: w.env, Workflow: flow, Pause: true}})
			w.claim(worker, 1) // it is looked at
			return id
		}},
		{"task.suspended", func(w *world, worker models.Worker, look func(models.ID)) models.ID {
			id := one()(w)
			lease := w.claim(worker, 1)[0]
			child := w.task(func(t *engine.NewTask) { t.Key = "c" })
			w.do(&engine.Command{ID: w.id(), Spawn: &engine.Spawn{Env: w.env, Task: id, Token: lease.Row.Token, Tasks: []engine.NewTask{child}}})
			look(id)
			r := ok(lease)
			r.Outcome, r.Result = models.AttemptSuspended, nil
			w.settle(worker, r)
			return id
		}},
		{"workflow.started", func(w *world, _ models.Worker, _ func(models.ID)) models.ID { f, _ := flow(w); return f }},
		{"workflow.succeeded", func(w *world, worker models.Worker, look func(models.ID)) models.ID {
			f, _ := flow(w)
			lease := w.claim(worker, 1)[0]
			look(f)
			w.settle(worker, ok(lease))
			return f
		}},
		{"workflow.failed", func(w *world, worker models.Worker, look func(models.ID)) models.ID {
			f, _ := flow(w)
			lease := w.claim(worker, 1)[0]
			look(f)
			w.settle(worker, failed(lease, "invalid_input"))
			return f
		}},
		{"workflow.cancelled", func(w *world, _ models.Worker, look func(models.ID)) models.ID {
			f, _ := flow(w)
			look(f)
			w.do(&engine.Command{ID: w.id(), Cancel: &engine.Cancel{Env: w.env, Workflow: f}})
			return f
		}},
		{"worker.silent", func(w *world, worker models.Worker, look func(models.ID)) models.ID {
			look(worker.ID)
			w.advance(40 * time.Second)
			return worker.ID
		}},
		{"worker.drained", func(w *world, worker models.Worker, look func(models.ID)) models.ID {
			look(worker.ID)
			w.do(&engine.Command{ID: w.id(), Retire: &engine.Retire{Worker: worker.ID, Session: worker.Session}})
			return worker.ID
		}},
		{"worker.lost", func(w *world, worker models.Worker, look func(models.ID)) models.ID {
			look(worker.ID)
			w.do(&engine.Command{ID: w.id(), Retire: &engine.Retire{Worker: worker.ID, Session: worker.Session, Gone: true}})
			return worker.ID
		}},
		{"worker.joined", func(_ *world, worker models.Worker, _ func(models.ID)) models.ID { return worker.ID }},
	} {
		t.Run(s.name, func(t *testing.T) {
			w := newWorld(t, engine.Config{})
			worker := w.worker("one")
			of := s.tell(w, worker, func(of models.ID) {
				if n := w.names(of)[s.name]; n != 0 {
					t.Fatalf("it is told %d times before it happens", n)
				}
			})
			if n := w.names(of)[s.name]; n != 1 {
				t.Errorf("it is told %d times: %v", n, w.names(of))
			}
		})
	}
}

func TestAChangeOfBrainIsToldOnce(t *testing.T) {
	w := newWorld(t, engine.Config{Address: "here"})
	told := func() (n int) {
		for _, e := range w.store.Events() {
			if e.Name == "brain.changed" && e.Env == 0 && e.Reason == "here" {
				n++
			}
		}
		return n
	}
	w.submit(w.task())
	w.rebuild() // by itself no change
	w.submit(w.task())
	if told() != 1 {
		t.Errorf("told %d times", told())
	}
	w.engine = engine.New(engine.Config{Address: "here", Seed: [32]byte{1}})
	brain, err := w.store.Brain(w.ctx)
	w.must(err)
	w.epoch, err = w.store.TakeOver(w.ctx, brain, "here")
	w.must(err)
	w.rebuild()
	w.submit(w.task())
	if told() != 2 {
		t.Errorf("after a takeover told %d times", told())
	}
}

func TestWhatASweepFoundIsToldAndJudged(t *testing.T) {
	w := newWorld(t, engine.Config{})
	id := w.submit(w.task())[0]
	w.do(&engine.Command{ID: w.id(), Recheck: &engine.Recheck{Drift: []engine.Drifted{{Env: w.env, Task: id, What: "waits for 2, not 1"}}}})
	if n := w.names(id)["counter.drifted"]; n != 1 {
		t.Errorf("drift is told %d times", n)
	}
}
