package sim

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"nightshift/models"
	"nightshift/scheduler/engine"
)

// job is a task as the world knows it.
type job struct {
	n        int
	tenant   *tenant
	arrival  *Arrival
	run      time.Duration
	arrived  models.Instant
	acked    bool
	state    models.State
	gated    bool
	started  bool
	ended    bool
	lines    bool      // it stands in a line
	accepted models.ID // the token whose success was accepted
	success  int
	row      models.Task
	next     *job // that waits for it
}

// begin makes tenants, lanes and workers, and puts what will come on the agenda. It answers whether such a world can be.
func (w *World) begin() bool {
	seen, err := w.store.Brain(context.Background())
	if err == nil {
		w.epoch, err = w.store.TakeOver(context.Background(), seen, w.config.Address)
	}
	if err != nil {
		panic(err)
	}
	w.engine = engine.New(w.configuration())
	w.rebuild()
	for _, t := range w.scenario.Tenants {
		w.found(t)
	}
	for _, l := range w.scenario.Lanes {
		if !w.knows(l.Tenant) {
			return false
		}
		lane := &models.Lane{Env: w.tenants[l.Tenant].env, Name: l.Name, Kind: l.Kind, Weight: 1, MaxConcurrent: l.MaxConcurrent, HighWater: 1000, TaskTypes: l.TaskTypes}
		w.configured(&engine.Configure{Lane: lane, New: true, Action: "lane.create"})
	}
	for i := range w.scenario.Workers {
		spec := &w.scenario.Workers[i]
		for n := range max(1, spec.Count) {
			w.hire(spec, n)
		}
	}
	for i := range w.scenario.Arrivals {
		if !w.knows(w.scenario.Arrivals[i].Tenant) {
			return false
		}
		w.expect(&w.scenario.Arrivals[i])
	}
	if every := w.scenario.Faults.BrainEvery; every > 0 {
		w.repeat(every, w.takeOver)
	}
	w.troubles()
	return len(w.result.Violations) == 0
}

func (w *World) knows(tenant string) bool {
	if w.tenants[tenant] == nil {
		w.violate("the scenario has no tenant %q", tenant)
	}
	return w.tenants[tenant] != nil
}

func (w *World) repeat(every time.Duration, do func()) {
	w.after(every, func() { do(); w.repeat(every, do) })
}

// found makes a tenant.
func (w *World) found(s Tenant) {
	made := w.configured(&engine.Configure{Tenant: &models.Tenant{ID: w.id(), Slug: s.Name, Name: s.Name, Weight: s.Weight, Timezone: "UTC"}, New: true, Action: "tenant.create"})
	if made == nil {
		return
	}
	t := &tenant{Tenant: s, number: made.Tenant.Number, env: w.watch.env} // every tenant begins with one environment
	w.tenants[s.Name] = t
	w.order = append(w.order, t)
}

// configured changes the world before it begins; nil where that is refused.
func (w *World) configured(c *engine.Configure) (out *engine.Answer) {
	w.ask(&engine.Command{Configure: c}, func(a *engine.Answer, err error) {
		if err != nil {
			w.violate("the scenario cannot be: %v", err)
			return
		}
		out = a
	})
	w.decide()
	return out
}

// expect puts an arrival on the agenda.
func (w *World) expect(a *Arrival) {
	w.tenants[a.Tenant].arrives = true
	for i := range max(1, a.Count) {
		w.coming++
		w.after(a.At+time.Duration(i)*a.Every, func() {
			w.coming--
			for left := max(1, a.Batch); left > 0; left -= mostCommands {
				w.submit(a, min(left, mostCommands))
			}
		})
	}
}

// submit sends n tasks of an arrival in one body.
func (w *World) submit(a *Arrival, n int) {
	t := w.tenants[a.Tenant]
	body := &engine.Submit{Env: t.env, InBatch: true}
	if a.Chain {
		body.Workflow = &engine.NewWorkflow{ID: w.id(), Name: "chain", Input: json.RawMessage(`{}`)}
	}
	made := make([]*job, n)
	for i := range n {
		made[i] = w.job(t, a)
		if a.Chain && i > 0 {
			made[i-1].next = made[i]
		}
		body.Tasks = append(body.Tasks, w.task(a, made[i], i, body.Tasks))
	}
	w.open += n
	w.send(body, made)
}

// send submits a body until it is acknowledged or refused.
func (w *World) send(body *engine.Submit, made []*job) {
	w.ask(&engine.Command{Tenant: made[0].tenant.number, Submit: body}, func(a *engine.Answer, err error) {
		if err != nil {
			w.result.Counters["refused"] += int64(len(made))
			w.open -= len(made)
			w.note("refused %d tasks: %s", len(made), models.CodeOf(err))
			return
		}
		for _, j := range made {
			j.acked = true
		}
	})
}

func (w *World) job(t *tenant, a *Arrival) *job {
	j := &job{n: len(w.all), tenant: t, arrival: a, run: a.Run, arrived: w.now}
	if a.Spread > 0 {
		j.run = time.Duration(float64(a.Run) * (1 + a.Spread*(2*w.rng.Float64()-1)))
	}
	w.all = append(w.all, j)
	return j
}

func (w *World) task(a *Arrival, j *job, i int, before []engine.NewTask) engine.NewTask {
	t := engine.NewTask{
		ID: w.id(), Class: a.Class, Lane: a.Lane, Priority: a.Priority, MaxAttempts: a.MaxAttempts, LimitKey: a.LimitKey, KeyLimit: a.KeyLimit,
		Input: json.RawMessage(`{}`),
	}
	if t.MaxAttempts == 0 {
		t.MaxAttempts = 3
	}
	if a.LimitKey != "" {
		t.KeyLimit = max(1, a.KeyLimit)
	}
	if a.Estimated {
		t.EstimateMS = a.Run.Milliseconds()
	}
	if a.Chain {
		t.Key = fmt.Sprintf("step-%d", i)
		if i > 0 {
			t.DependsOn = []engine.Dependency{{Task: before[i-1].ID, On: models.OnSucceeded}}
		}
	}
	w.jobs[t.ID] = j
	return t
}
