package board

import (
	"slices"

	"nightshift/models"
)

// seenFor is how long it is remembered what of the work that others yield to was seen in a pool.
const seenFor = 3_600_000_000

// SetApart finds the makes that could run nothing of what others yield to, by what of it was seen in their pool lately: they
// hold nothing back for it, and are none of the capacity that is shared. Where nothing was seen yet, all share.
func (b *Board) SetApart() {
	rules := b.Rules()
	for _, l := range b.Leases { // any order: a set
		if lane := b.Lanes[l.Row().Lane]; l.Worker != nil && lane != nil {
			b.saw(rules, l.Worker.Pool, l.Kind, lane, l.Row().Class)
		}
	}
	for _, r := range rules {
		r.needing(b, func(l *Line) {
			for _, h := range r.holds { // any order: each on its own
				h.saw(l.ID.Class, b.Now)
			}
		})
		for _, h := range r.holds { // any order: each on its own
			for class, at := range h.classes { // any order: each on its own
				if b.Now-at > seenFor {
					delete(h.classes, class)
				}
			}
		}
	}
	changed := false
	for _, m := range b.makes {
		apart := b.apartFrom(rules, m)
		changed = changed || !slices.Equal(apart, m.apart)
		m.apart = apart
	}
	if changed {
		b.countAll()
	}
}

// countAll counts all leases anew, and offers lanes that yield to whom they concern now.
func (b *Board) countAll() {
	b.countAnew(nil, true, func(*Lease) bool { return true })
	for env := range b.laneRules { // any order: each on its own
		b.offerAnew(env)
	}
}

func (b *Board) saw(rules []*Rule, pool string, kind models.KindName, lane *Lane, class int32) {
	for _, r := range rules {
		if h := r.holds[pool]; h != nil && (slices.Contains(r.To, kind) || slices.Contains(r.ToThe, lane.Number)) {
			h.saw(class, b.Now)
		}
	}
}

func (h *Hold) saw(class int32, now models.Instant) {
	if h.classes == nil {
		h.classes = map[int32]models.Instant{}
	}
	h.classes[class] = now
}

// apartFrom are the rules whose other side could run nothing on workers of a make.
func (b *Board) apartFrom(rules []*Rule, m *Make) (out []*Rule) {
	for _, r := range rules {
		h := r.holds[m.pool]
		if h == nil || len(h.classes) == 0 {
			continue
		}
		some := false
		for class := range h.classes { // any order: whether there is one
			some = some || b.Fits(m.like, class)
		}
		if !some {
			out = append(out, r)
		}
	}
	return out
}

// needing calls each for the lines of what others yield to by the rule.
func (r *Rule) needing(b *Board, each func(*Line)) {
	for _, kind := range r.To {
		for _, q := range b.order[kind] {
			for _, l := range q.Lines {
				each(l)
			}
		}
	}
	for _, n := range r.ToThe {
		if lane := b.Lanes[n]; lane != nil {
			for _, l := range lane.lines {
				each(l)
			}
		}
	}
}

// apartLike takes over which makes are apart from a board with the same rules.
func (b *Board) apartLike(other *Board) {
	rules, theirs := b.Rules(), other.Rules()
	for _, m := range b.makes {
		for _, o := range other.makes {
			if o.name != m.name {
				continue
			}
			m.apart = nil
			for i, r := range theirs {
				if i < len(rules) && slices.Contains(o.apart, r) {
					m.apart = append(m.apart, rules[i])
				}
			}
		}
	}
	b.countAll()
}
