package board

import (
	"cmp"
	"slices"

	"nightshift/models"
	"nightshift/scheduler/fair"
)

// Group is what is on offer in one kind and class: the lines that are open and have a task at hand.
type Group struct {
	Class int32
	Lines []*Line // in no order
}

// offers are the groups of one kind.
type offers struct {
	byClass map[int32]*Group
	order   []*Group
}

// Groups lists what is on offer in a kind, a class each.
func (b *Board) Groups(kind models.KindName) []*Group { return b.offers[kind].order }

// offer puts a line on offer or takes it off, as its gate and its windows say.
func (b *Board) offer(l *Line) {
	atHand := len(l.ranks.entries)+len(l.starts.entries) > 0
	open := atHand && b.shutBy(&l.at, true) == ""
	switch {
	case open && !l.offered:
		b.putOnOffer(l)
	case !open && l.offered:
		l.shut = l.shut || atHand
		b.takeOff(l)
	case !open && atHand:
		l.shut = true
	}
}

func (b *Board) putOnOffer(l *Line) {
	o := &b.offers[l.Kind]
	g := o.byClass[l.ID.Class]
	if g == nil {
		g = &Group{Class: l.ID.Class}
		if o.byClass == nil {
			o.byClass = map[int32]*Group{}
		}
		o.byClass[l.ID.Class] = g
		o.order = append(o.order, g)
	}
	l.inGroup = len(g.Lines)
	g.Lines = append(g.Lines, l)
	l.offered = true
	for _, m := range b.makes {
		m.add(b, l)
	}
	l.fresh = false
	if l.shut {
		l.shut = false
		b.unblock(l.Kind, l.Tenant)
	}
}

func (b *Board) takeOff(l *Line) {
	l.offered = false
	o := &b.offers[l.Kind]
	g := o.byClass[l.ID.Class]
	g.Lines = swapOut(g.Lines, l.inGroup, func(o *Line) *int { return &o.inGroup })
	if len(g.Lines) == 0 {
		delete(o.byClass, g.Class)
		o.order = slices.DeleteFunc(o.order, func(x *Group) bool { return x == g })
	}
	l.withdraw()
}

// unblock lets a tenant whose gate has opened re-enter every pool's queue near its virtual time.
func (b *Board) unblock(kind models.KindName, tenant int32) {
	for id, clock := range b.clocks { // any order: each on its own
		if id.kind == kind {
			clock.Unblock(tenant)
		}
	}
}

// Charge starts a task on a tenant's account; Correct settles it to what was used.
func (b *Board) Charge(l *Lease, seconds float64) {
	l.Charged = seconds
	b.Clock(l.Pool, l.Kind).Start(l.Tenant, seconds, b.Weight(l.Tenant))
	b.kindClock(l.Pool).Start(int32(l.Kind), seconds, b.Kinds[l.Kind].Weight)
}

// Correct books what a lease used beyond or below what was charged for it.
func (b *Board) Correct(l *Lease, used float64) {
	b.Clock(l.Pool, l.Kind).Correct(l.Tenant, used-l.Charged, b.Weight(l.Tenant))
	b.kindClock(l.Pool).Correct(int32(l.Kind), used-l.Charged, b.Kinds[l.Kind].Weight)
	if used < l.Charged {
		b.lowered(l.Pool, l.Kind, l.Tenant)
	}
	l.Charged = used
}

// kindClock holds the virtual times of the kinds in a pool. It is not saved: a new brain lets all kinds begin alike.
func (b *Board) kindClock(pool string) *fair.Clock {
	c := b.kindClocks[pool]
	if c == nil {
		c = fair.NewClock()
		b.kindClocks[pool] = c
	}
	return c
}

// KindTime is the virtual time of a kind in a pool: of those that go alike the smallest goes next.
func (b *Board) KindTime(pool string, kind models.KindName) float64 {
	return b.kindClock(pool).Time(int32(kind))
}

// lowered moves a tenant whose virtual time went back up in the heaps of a pool.
func (b *Board) lowered(pool string, kind models.KindName, tenant int32) {
	for _, m := range b.makes {
		if m.pool == pool {
			m.heaps[kind].raise(m.stands[kind][tenant])
		}
	}
}

// regate looks at the gates of lines again after what they depend on has changed.
func (b *Board) regate(concerns func(*Line) bool) {
	for _, kind := range b.order {
		for _, q := range kind {
			for _, l := range slices.Clone(q.Lines) {
				if concerns(l) {
					b.offer(l)
				}
			}
		}
	}
}

// compareTenants orders lines by tenant, then by name.
func compareTenants(a, b *Line) int {
	return cmp.Or(cmp.Compare(a.Tenant, b.Tenant), CompareLines(a.ID, b.ID))
}
