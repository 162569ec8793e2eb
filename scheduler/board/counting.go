package board

import (
	"slices"

	"nightshift/models"
	"nightshift/scheduler/elastic"
)

func (r *Rule) hold(pool string) *Hold {
	h := r.holds[pool]
	if h == nil {
		h = &Hold{Hold: elastic.New(), Rule: r, Pool: pool}
		r.holds[pool] = h
	}
	return h
}

// countOn says in which holds leases of each kind count on a worker, and opens those of lanes.
func (b *Board) countOn(w *Worker) {
	w.counts = [4]*counts{}
	of := func(k models.KindName) *counts {
		if w.counts[k] == nil {
			w.counts[k] = &counts{}
		}
		return w.counts[k]
	}
	for _, r := range b.kindRules {
		if !b.contests(r, w) {
			continue
		}
		h := r.hold(w.Pool)
		for _, k := range r.Kinds {
			of(k).yields = h
		}
		for _, k := range r.To {
			of(k).needs = append(of(k).needs, h)
		}
	}
	for _, rules := range b.laneRules { // any order: each on its own
		b.openOn(w, rules)
	}
}

// openOn makes the holds of rules of lanes that a worker is contested by.
func (b *Board) openOn(w *Worker, rules []*Rule) {
	for _, r := range rules {
		if b.contests(r, w) {
			r.hold(w.Pool)
		}
	}
}

// laneCounts are the holds that a lease of a lane counts in on a worker beside those of its kind.
func (b *Board) laneCounts(lane *Lane, w *Worker) *counts {
	if lane == nil || lane.rule == nil && len(lane.needed) == 0 {
		return nil
	}
	c := &counts{}
	if lane.rule != nil && b.contests(lane.rule, w) {
		c.yields = lane.rule.hold(w.Pool)
	}
	for _, r := range lane.needed {
		if b.contests(r, w) {
			c.needs = append(c.needs, r.hold(w.Pool))
		}
	}
	return c
}

// countIn counts a lease where its worker and lane say; countOut takes it out again.
func (b *Board) countIn(l *Lease) {
	l.ofKind, l.ofLane = l.Worker.counts[l.Kind], b.laneCounts(b.Lanes[l.Row().Lane], l.Worker)
	b.put(l.ofKind, 1)
	b.put(l.ofLane, 1)
}

func (b *Board) countOut(l *Lease) {
	b.put(l.ofKind, -1)
	b.put(l.ofLane, -1)
	l.ofKind, l.ofLane = nil, nil
}

// reruleKinds makes the rules of kinds anew, and those of lanes that depend on them.
func (b *Board) reruleKinds() {
	b.ruleKinds()
	var envs []int32
	for env := range b.lanesOf { // any order: each on its own
		if b.elasticIn(env) {
			envs = append(envs, env)
			b.ruleLanes(env)
		}
	}
	b.countAnew(nil, true, func(*Lease) bool { return true })
	for _, env := range envs { // any order: each on its own
		b.offerAnew(env)
	}
}

// elasticIn says whether a lane of the environment is elastic by itself.
func (b *Board) elasticIn(env int32) bool {
	return slices.ContainsFunc(b.lanesOf[env], func(l *Lane) bool { return l.Elastic })
}

// reruleLanes makes the rules of an environment's lanes anew.
func (b *Board) reruleLanes(env int32) {
	b.ruleLanes(env)
	b.countAnew(b.laneRules[env], false, func(l *Lease) bool { return l.Row().Env == env })
	b.offerAnew(env)
}

// countAnew counts leases anew after rules have changed.
func (b *Board) countAnew(rules []*Rule, everything bool, concerns func(*Lease) bool) {
	if len(b.Workers) == 0 {
		return
	}
	for _, l := range b.Leases { // any order: counts
		if l.Worker != nil && concerns(l) {
			b.countOut(l)
		}
	}
	for _, w := range b.Workers { // any order: each on its own
		if everything {
			b.countOn(w)
			continue
		}
		b.openOn(w, rules)
	}
	for _, l := range b.Leases { // any order: counts
		if l.Worker != nil && concerns(l) {
			b.countIn(l)
		}
	}
	b.bound = 0
	for _, r := range b.Rules() {
		for _, h := range r.holds { // any order: a count
			if h.Holds() {
				b.bound++
			}
		}
	}
}

// offerAnew looks again whom the lines of an environment's lanes are offered to.
func (b *Board) offerAnew(env int32) {
	for _, lane := range b.lanesOf[env] {
		b.offerLane(lane)
	}
}
