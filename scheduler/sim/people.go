package sim

import (
	"context"
	"time"

	"nightshift/models"
	"nightshift/scheduler/engine"
)

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
	for i := range w.scenario.Kinds {
		w.configured(&engine.Configure{Kind: &w.scenario.Kinds[i], Version: -1, Action: "kind.update"})
	}
	for _, l := range w.scenario.Lanes {
		if !w.knows(l.Tenant) {
			return false
		}
		env := w.tenants[l.Tenant].env
		if first := w.engine.Board().LaneNamed(env, l.Name); first != nil {
			lane := first.Lane
			lane.MaxConcurrent, lane.TaskTypes = l.MaxConcurrent, l.TaskTypes
			w.configured(&engine.Configure{Lane: &lane, Version: lane.Version, Action: "lane.edit"})
			continue
		}
		lane := &models.Lane{Env: env, Name: l.Name, Kind: l.Kind, Weight: 1, MaxConcurrent: l.MaxConcurrent, HighWater: 1000, TaskTypes: l.TaskTypes}
		w.configured(&engine.Configure{Lane: lane, New: true, Action: "lane.create"})
	}
	for _, l := range w.scenario.Lanes { // once there are all of those they name
		if l.Elastic {
			lane := w.engine.Board().LaneNamed(w.tenants[l.Tenant].env, l.Name).Lane
			lane.Elastic, lane.YieldsTo, lane.MaxHold = true, l.YieldsTo, l.MaxHold
			w.configured(&engine.Configure{Lane: &lane, Version: lane.Version, Action: "lane.edit"})
		}
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
		w.expect(i, &w.scenario.Arrivals[i])
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
	t := &tenant{Tenant: s, index: len(w.order), number: made.Tenant.Number, env: w.watch.env} // every tenant begins with one environment
	w.tenants[s.Name] = t
	w.order = append(w.order, t)
	w.limit(t)
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
