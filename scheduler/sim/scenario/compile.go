package scenario

import (
	"cmp"
	"errors"
	"slices"
	"time"

	"nightshift/models"
	"nightshift/scheduler/sim"
)

const (
	defaultHorizon  = time.Hour
	defaultPriority = 50
	mostTimeline    = 2000
	mostTasks       = 5_000_000
)

// compile makes a world of a file.
func compile(f *file, w where) (sim.Scenario, error) {
	s := sim.Scenario{Seed: f.Seed, Until: cmp.Or(f.Horizon, defaultHorizon), Pace: f.Pace, Points: cmp.Or(f.Timeline, 120)}
	switch {
	case s.Until < 0 || s.Pace < 0:
		return s, errors.New("horizon and pace are not negative")
	case s.Points < 1 || s.Points > mostTimeline:
		return s, errors.New("a timeline has 1 to 2000 points")
	case len(f.Tenants) == 0:
		return s, errors.New("there are no tenants")
	case len(f.Workers) == 0:
		return s, errors.New("there are no workers")
	case len(f.Arrivals) == 0:
		return s, errors.New("nothing arrives")
	}
	tenants := map[string]bool{}
	for i, t := range f.Tenants {
		weight := 1.0
		if t.Weight != nil {
			weight = *t.Weight
		}
		switch {
		case t.Name == "":
			return s, w.wrong("tenants", i, "the tenant has no name")
		case tenants[t.Name]:
			return s, w.wrong("tenants", i, "there are two tenants %q", t.Name)
		case !(weight > 0 && weight <= 1000):
			return s, w.wrong("tenants", i, "the weight of %s is %v: weights are above 0 and at most 1000", t.Name, weight)
		}
		tenants[t.Name] = true
		wrong := func(format string, args ...any) error { return w.wrong("tenants", i, format, args...) }
		quotas, err := limits(&f.Tenants[i], wrong)
		if err != nil {
			return s, err
		}
		rates, err := rates(&f.Tenants[i], wrong)
		if err != nil {
			return s, err
		}
		s.Tenants = append(s.Tenants, sim.Tenant{Name: t.Name, Weight: weight, Quotas: quotas, Rates: rates})
	}
	for _, step := range []func(*file, where, *sim.Scenario, map[string]bool) error{kinds, lanes, workers, arrivals, troubles} {
		if err := step(f, w, &s, tenants); err != nil {
			return s, err
		}
	}
	return s, nil
}

func kinds(f *file, w where, s *sim.Scenario, _ map[string]bool) error {
	defaults := models.DefaultKinds()
	for i, k := range f.Kinds {
		name, ok := models.ParseKind(k.Name)
		if !ok {
			return w.wrong("kinds", i, "there is no kind %q", k.Name)
		}
		row := defaults[name]
		if k.Precedence != nil {
			row.Precedence = *k.Precedence
		}
		if k.Weight != nil {
			row.Weight = *k.Weight
		}
		if k.MinShare != nil {
			row.MinShare = *k.MinShare
		}
		if k.Elastic != nil {
			row.Elastic = *k.Elastic
		}
		row.YieldsTo, row.MaxHold = append([]string(nil), k.YieldsTo...), k.MaxHold
		for _, other := range k.YieldsTo {
			if of, ok := models.ParseKind(other); !ok || of == name {
				return w.wrong("kinds", i, "a kind yields to other kinds, not to %q", other)
			}
		}
		if k.MaxHold < 0 {
			return w.wrong("kinds", i, "max_hold_seconds is not negative")
		}
		if !(row.Weight > 0) || !(row.MinShare >= 0 && row.MinShare <= 1) {
			return w.wrong("kinds", i, "weights are above 0, a min_share is 0 to 1")
		}
		s.Kinds = append(s.Kinds, row)
	}
	return nil
}

func lanes(f *file, w where, s *sim.Scenario, tenants map[string]bool) error {
	for i, l := range f.Lanes {
		first, isFirst := models.ParseKind(l.Name) // one that the tenant has anyway: this says what is different
		kind, ok := models.ParseKind(cmp.Or(l.Kind, "batch"))
		if isFirst && l.Kind == "" {
			kind = first
		}
		switch {
		case !tenants[l.Tenant]:
			return w.wrong("lanes", i, "there is no tenant %q", l.Tenant)
		case l.Name == "":
			return w.wrong("lanes", i, "the lane has no name")
		case !ok:
			return w.wrong("lanes", i, "there is no kind %q", l.Kind)
		case isFirst && kind != first:
			return w.wrong("lanes", i, "the lane %s is of the kind of its name", l.Name)
		case slices.ContainsFunc(f.Lanes[:i], func(o lane) bool { return o.Tenant == l.Tenant && o.Name == l.Name }):
			return w.wrong("lanes", i, "%s has two lanes %q", l.Tenant, l.Name)
		case l.MaxConcurrent < 0 || l.MaxHold < 0:
			return w.wrong("lanes", i, "max_concurrent and max_hold_seconds are not negative")
		}
		for _, other := range l.YieldsTo {
			if other == l.Name || !laneKnown(f, l.Tenant, other) {
				return w.wrong("lanes", i, "a lane yields to other lanes of its tenant, not to %q", other)
			}
		}
		s.Lanes = append(s.Lanes, sim.Lane{
			Tenant: l.Tenant, Name: l.Name, Kind: kind, MaxConcurrent: l.MaxConcurrent, TaskTypes: l.TaskTypes,
			Elastic: l.Elastic, YieldsTo: append([]string(nil), l.YieldsTo...), MaxHold: l.MaxHold,
		})
	}
	return nil
}

// laneKnown says whether a tenant has a lane: of the file, or of a kind's name.
func laneKnown(f *file, tenant, name string) bool {
	_, ok := models.ParseKind(name)
	return ok || slices.ContainsFunc(f.Lanes, func(l lane) bool { return l.Tenant == tenant && l.Name == name })
}

func workers(f *file, w where, s *sim.Scenario, _ map[string]bool) error {
	for i, k := range f.Workers {
		row := models.Worker{
			Pool: cmp.Or(k.Pool, "cpu"), Slots: k.Slots, KindSlots: k.SlotsByKind, CPUMilli: milli(k.CPU), MemoryMB: k.MemoryMB, DiskMB: k.DiskMB,
			Models: k.Models, AnyModel: k.AnyModel, Labels: k.Labels, Permissions: k.Permissions, AnyPermit: k.AnyPermit, TaskTypes: k.TaskTypes, Lanes: k.Lanes, LeaseSeconds: int32(k.Lease / time.Second),
		}
		for _, mb := range k.GPUs {
			row.GPUs = append(row.GPUs, models.GPUCard{VRAMMB: mb})
		}
		for _, name := range k.Kinds {
			kind, ok := models.ParseKind(name)
			if !ok {
				return w.wrong("workers", i, "there is no kind %q", name)
			}
			row.Kinds = append(row.Kinds, kind)
		}
		switch {
		case k.Name == "":
			return w.wrong("workers", i, "the worker has no name")
		case k.Slots <= 0 && len(k.SlotsByKind) == 0:
			return w.wrong("workers", i, "%s has no slots", k.Name)
		case k.Count < 0 || k.Count > 10_000 || k.CPU < 0 || k.MemoryMB < 0 || k.From < 0 || k.To < 0 || k.To > 0 && k.To <= k.From:
			return w.wrong("workers", i, "%s: count is at most 10000, nothing is negative, and it comes before it goes", k.Name)
		}
		if len(k.SlotsByKind) > 0 {
			row.Slots = 0
		}
		s.Workers = append(s.Workers, sim.Worker{Name: k.Name, Count: k.Count, From: k.From, To: k.To, Worker: row})
	}
	return nil
}

func milli(cpu float64) int64 { return int64(cpu*1000 + 0.5) }

func troubles(f *file, _ where, s *sim.Scenario, _ map[string]bool) error {
	x := f.Faults
	if x.LostAnswersPercent < 0 || x.LostAnswersPercent > 90 || x.FailedCommitsPermille < 0 || x.UnclearCommitsPermille < 0 || x.FailedCommitsPermille+x.UnclearCommitsPermille > 900 {
		return errors.New("faults: at most 90 percent of answers are lost and 900 per mille of commits fail")
	}
	if x.CrashEvery < 0 || x.DownFor < 0 || x.BrainEvery < 0 {
		return errors.New("faults: no span is negative")
	}
	s.Faults = sim.Faults{
		CrashEvery: x.CrashEvery, DownFor: x.DownFor, LostAnswers: x.LostAnswersPercent, BrainEvery: x.BrainEvery,
		FailedApplies: x.FailedCommitsPermille, UnclearApplies: x.UnclearCommitsPermille,
	}
	return nil
}
