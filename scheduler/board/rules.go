package board

import (
	"cmp"
	"maps"
	"slices"

	"nightshift/models"
	"nightshift/scheduler/elastic"
)

// Rule is work that yields to other work: kinds to kinds, over all tenants, or lanes to lanes of their environment.
type Rule struct {
	Env   int32 // 0: of kinds
	Kinds []models.KindName
	To    []models.KindName
	Lanes []int32
	ToThe []int32 // lanes

	holds map[string]*Hold // by pool
}

// PutKind replaces a kind.
func (b *Board) PutKind(k models.Kind) {
	b.Kinds[k.Name] = k
	for _, c := range b.kindClocks { // any order: each on its own
		for _, name := range models.Kinds() { // who went before and who behind is over
			c.Wake(int32(name))
		}
	}
	b.reruleKinds()
}

// KindsBefore are the kinds that a kind yields to: those it names, else those that are not elastic.
func KindsBefore(kinds *[4]models.Kind, k *models.Kind) (out []models.KindName) {
	for _, name := range models.Kinds() {
		if named := slices.Contains(k.YieldsTo, name.String()); named || len(k.YieldsTo) == 0 && !kinds[name].Elastic {
			out = append(out, name)
		}
	}
	return slices.DeleteFunc(out, func(name models.KindName) bool { return name == k.Name })
}

// ruleKinds makes the rules of kinds. Kinds that yield to the same ones share their room.
func (b *Board) ruleKinds() {
	before := b.kindRules
	b.kindRules = nil
	for i := range b.Kinds {
		k := &b.Kinds[i]
		to := KindsBefore(&b.Kinds, k)
		if !k.Elastic || len(to) == 0 {
			continue
		}
		at := slices.IndexFunc(b.kindRules, func(r *Rule) bool { return slices.Equal(r.To, to) })
		if at < 0 {
			at = len(b.kindRules)
			b.kindRules = append(b.kindRules, &Rule{To: to})
		}
		b.kindRules[at].Kinds = append(b.kindRules[at].Kinds, k.Name)
	}
	keepHolds(b.kindRules, before)
}

// ruleLanes makes the rules of an environment's lanes.
func (b *Board) ruleLanes(env int32) {
	before := b.laneRules[env]
	var rules []*Rule
	for _, l := range b.lanesOf[env] {
		l.rule, l.needed = nil, nil
	}
	for _, l := range b.lanesOf[env] {
		to := b.lanesBefore(l)
		if !l.Elastic || len(to) == 0 {
			continue
		}
		at := slices.IndexFunc(rules, func(r *Rule) bool { return slices.Equal(r.ToThe, to) })
		if at < 0 {
			at = len(rules)
			rules = append(rules, &Rule{Env: env, ToThe: to})
			for _, n := range to {
				b.Lanes[n].needed = append(b.Lanes[n].needed, rules[at])
			}
		}
		rules[at].Lanes = append(rules[at].Lanes, l.Number)
		l.rule = rules[at]
	}
	keepHolds(rules, before)
	delete(b.laneRules, env)
	if len(rules) > 0 {
		b.laneRules[env] = rules
	}
}

// lanesBefore are the lanes that a lane yields to: those it names, else those of its environment that yield to nobody.
func (b *Board) lanesBefore(l *Lane) (out []int32) {
	for _, o := range b.lanesOf[l.Env] {
		if o != l && (slices.Contains(l.YieldsTo, o.Name) || len(l.YieldsTo) == 0 && !o.Elastic && !b.Kinds[o.Kind].Elastic) {
			out = append(out, o.Number)
		}
	}
	return out
}

// keepHolds lets rules that say the same as before go on with what is known of their pools.
func keepHolds(rules, before []*Rule) {
	for _, r := range rules {
		r.holds = map[string]*Hold{}
		for _, old := range before {
			if !sameRule(r, old) {
				continue
			}
			for pool, h := range old.holds { // any order: each on its own
				h.Rule = r
				r.holds[pool] = h
			}
		}
	}
}

// Rules lists all, those of kinds first, then by environment.
func (b *Board) Rules() []*Rule {
	out := slices.Clone(b.kindRules)
	for _, env := range slices.Sorted(maps.Keys(b.laneRules)) {
		out = append(out, b.laneRules[env]...)
	}
	return out
}

// Holds lists the pools a rule looks at, by name.
func (r *Rule) Holds() []*Hold {
	out := make([]*Hold, 0, len(r.holds))
	for _, h := range r.holds { // any order: sorted below
		out = append(out, h)
	}
	slices.SortFunc(out, func(a, b *Hold) int { return cmp.Compare(a.Pool, b.Pool) })
	return out
}

// contests says that the slots of a worker could be taken by both sides of a rule.
func (b *Board) contests(r *Rule, w *Worker) bool { return b.SlotsFor(r, w) > 0 }

// SlotsFor are the slots of a worker that both sides of a rule could take.
func (b *Board) SlotsFor(r *Rule, w *Worker) int32 {
	if w.Make != nil && slices.Contains(w.Make.apart, r) {
		return 0
	}
	if r.Env == 0 {
		if w.KindSlots == nil && reaches(w, r.Kinds) && reaches(w, r.To) {
			return w.Slots
		}
		return 0
	}
	yields, serves := b.serve(w, r.Env, r.Lanes)
	needs, served := b.serve(w, r.Env, r.ToThe)
	switch {
	case !serves || !served:
		return 0
	case w.KindSlots == nil:
		return w.Slots
	case yields == needs:
		return w.KindSlots[yields.String()]
	}
	return 0
}

// serve says whether a worker takes tasks of one of the lanes, and of what kind the last of those is.
func (b *Board) serve(w *Worker, env int32, lanes []int32) (kind models.KindName, some bool) {
	for _, n := range lanes {
		if l := b.Lanes[n]; l != nil && b.Serves(w, env, l) {
			kind, some = l.Kind, true
		}
	}
	return kind, some
}

// reaches says whether a worker takes tasks of one of the kinds. Lanes that are named like kinds are theirs; what any other
// one is differs from environment to environment.
func reaches(w *Worker, kinds []models.KindName) bool {
	return slices.ContainsFunc(kinds, func(k models.KindName) bool {
		if len(w.Kinds) > 0 && !slices.Contains(w.Kinds, k) {
			return false
		}
		return len(w.Lanes) == 0 || slices.ContainsFunc(w.Lanes, func(name string) bool {
			of, ok := models.ParseKind(name)
			return !ok || of == k
		})
	})
}

// dropHolds forgets what is known of a pool that has no workers any more.
func (b *Board) dropHolds(pool string) {
	for _, r := range b.Rules() {
		if h := r.holds[pool]; h != nil {
			if h.Holds() {
				b.bound--
			}
			delete(r.holds, pool)
		}
	}
}

// KeepHolds takes over what the board before knew of its pools.
func (b *Board) KeepHolds(old *Board) {
	rules, before := b.Rules(), old.Rules()
	if slices.EqualFunc(rules, before, sameRule) {
		b.apartLike(old)
	}
	for _, r := range rules {
		at := slices.IndexFunc(before, func(o *Rule) bool { return sameRule(r, o) })
		if at < 0 {
			continue
		}
		for pool, h := range r.holds { // any order: each on its own
			if was := before[at].holds[pool]; was != nil {
				b.SetRoom(h, func(e *elastic.Hold) { *e = was.Hold })
				h.Seen, h.classes, h.busy.area, h.busy.from, h.busy.at = was.Seen, was.classes, was.busy.area, was.busy.from, was.busy.at
			}
		}
	}
}

func sameRule(a, b *Rule) bool {
	return a.Env == b.Env && slices.Equal(a.Kinds, b.Kinds) && slices.Equal(a.To, b.To) && slices.Equal(a.Lanes, b.Lanes) && slices.Equal(a.ToThe, b.ToThe)
}
