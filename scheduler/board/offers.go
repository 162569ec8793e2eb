package board

import (
	"cmp"
	"container/heap"
	"slices"

	"nightshift/models"
	"nightshift/scheduler/fair"
)

// Group is what is on offer in one kind and class: the lines of every tenant that are open and have a task at hand. Who
// fits the class takes from the tenant with the smallest virtual time, however many tenants there are.
type Group struct {
	Class int32
	// Misfit is when a worker with a free slot last had no room for the class: other tasks filled the gaps.
	Misfit models.Instant
	stands map[int32]*Stand // by tenant
	heaps  map[string]*standHeap
}

// Stand is what one tenant offers in a group.
type Stand struct {
	Tenant int32
	Lines  []*Line
	group  *Group
	places map[string]*standPlace // in the heaps, by pool
}

// standPlace is a stand in one pool's heap. The key may be older than the tenant's virtual time, never younger.
type standPlace struct {
	stand *Stand
	key   float64
	index int
}

type standHeap []*standPlace

func (h standHeap) Len() int { return len(h) }
func (h standHeap) Less(i, j int) bool {
	return h[i].key < h[j].key || h[i].key == h[j].key && h[i].stand.Tenant < h[j].stand.Tenant
}
func (h standHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i]; h[i].index, h[j].index = i, j }
func (h *standHeap) Push(x any)   { p := x.(*standPlace); p.index = len(*h); *h = append(*h, p) }
func (h *standHeap) Pop() any {
	old := *h
	p := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	p.index = -1
	return p
}

// Groups lists what is on offer in a kind, a class each.
func (b *Board) Groups(kind models.KindName) []*Group { return b.offers[kind].order }

// offers are the groups of one kind.
type offers struct {
	byClass map[int32]*Group
	order   []*Group
}

// Gate is the reason why nothing of a line may start now, empty when it may.
func (b *Board) Gate(l *Line) string {
	env, tenant, lane := b.Envs[l.ID.Env], b.Tenants[l.Tenant], b.Lanes[l.ID.Lane]
	switch {
	case env == nil || tenant == nil || lane == nil:
		return "quarantine"
	case tenant.Suspended:
		return "tenant_suspended"
	case env.Paused:
		return "environment_paused"
	case lane.Paused:
		return "lane_paused"
	case lane.MaxConcurrent > 0 && lane.Running >= lane.MaxConcurrent:
		return "lane_limit"
	}
	return ""
}

// offer puts a line on offer or takes it off, as its gate and its window say.
func (b *Board) offer(l *Line) {
	open := len(l.ranks.entries)+len(l.starts.entries) > 0 && b.Gate(l) == ""
	switch {
	case open && l.stand == nil:
		b.putOnOffer(l)
	case !open && l.stand != nil:
		l.shut = l.shut || len(l.ranks.entries)+len(l.starts.entries) > 0
		b.takeOff(l)
	case !open && len(l.ranks.entries) > 0:
		l.shut = true
	}
}

func (b *Board) putOnOffer(l *Line) {
	o := &b.offers[l.Kind]
	g := o.byClass[l.ID.Class]
	if g == nil {
		g = &Group{Class: l.ID.Class, stands: map[int32]*Stand{}, heaps: map[string]*standHeap{}}
		if o.byClass == nil {
			o.byClass = map[int32]*Group{}
		}
		o.byClass[l.ID.Class] = g
		o.order = append(o.order, g)
	}
	s := g.stands[l.Tenant]
	if s == nil {
		s = &Stand{Tenant: l.Tenant, group: g, places: map[string]*standPlace{}}
		g.stands[l.Tenant] = s
		for pool, h := range g.heaps { // any order: each on its own
			p := &standPlace{stand: s, key: b.Clock(pool, l.Kind).Time(l.Tenant)}
			s.places[pool] = p
			heap.Push(h, p)
		}
		if q := b.queues[l.Kind][l.Tenant]; q != nil {
			q.stands = append(q.stands, s)
		}
	}
	s.Lines = append(s.Lines, l)
	l.stand = s
	if l.shut {
		l.shut = false
		b.unblock(l.Kind, l.Tenant)
	}
}

// unblock lets a tenant whose gate has opened re-enter every pool's queue near its virtual time.
func (b *Board) unblock(kind models.KindName, tenant int32) {
	for id, clock := range b.clocks { // any order: each on its own
		if id.kind == kind {
			clock.Unblock(tenant)
		}
	}
}

func (b *Board) takeOff(l *Line) {
	s := l.stand
	l.stand = nil
	s.Lines = slices.DeleteFunc(s.Lines, func(o *Line) bool { return o == l })
	if len(s.Lines) > 0 {
		return
	}
	g := s.group
	delete(g.stands, s.Tenant)
	for pool, p := range s.places { // any order: each on its own
		if p.index >= 0 {
			heap.Remove(g.heaps[pool], p.index)
		}
	}
	s.places = nil
	if q := b.queues[l.Kind][s.Tenant]; q != nil {
		q.stands = slices.DeleteFunc(q.stands, func(o *Stand) bool { return o == s })
	}
	if len(g.stands) == 0 {
		o := &b.offers[l.Kind]
		delete(o.byClass, g.Class)
		o.order = slices.DeleteFunc(o.order, func(x *Group) bool { return x == g })
	}
}

// heapOf is the pool's heap, made when a worker of the pool first looks.
func (g *Group) heapOf(pool string, clock *fair.Clock) *standHeap {
	if h := g.heaps[pool]; h != nil {
		return h
	}
	h := &standHeap{}
	for _, s := range g.stands { // any order: a heap
		p := &standPlace{stand: s, key: clock.Time(s.Tenant), index: len(*h)}
		s.places[pool] = p
		*h = append(*h, p)
	}
	heap.Init(h)
	g.heaps[pool] = h
	return h
}

// First is the stand of the tenant with the smallest virtual time in the pool, nil when nothing is on offer.
func (g *Group) First(pool string, clock *fair.Clock) *Stand {
	h := g.heapOf(pool, clock)
	for len(*h) > 0 {
		p := (*h)[0]
		now := clock.Time(p.stand.Tenant)
		if now <= p.key {
			return p.stand
		}
		p.key = now
		heap.Fix(h, 0)
	}
	return nil
}

// Stands lists what every tenant offers in the group, by tenant.
func (g *Group) Stands() []*Stand {
	out := make([]*Stand, 0, len(g.stands))
	for _, s := range g.stands { // any order: sorted below
		out = append(out, s)
	}
	slices.SortFunc(out, func(a, b *Stand) int { return cmp.Compare(a.Tenant, b.Tenant) })
	return out
}

// Of is the stand of one tenant, nil when it offers nothing.
func (g *Group) Of(tenant int32) *Stand { return g.stands[tenant] }

// SetAside takes the first stand out of the pool's heap until PutBack.
func (g *Group) SetAside(pool string) *Stand { return heap.Pop(g.heaps[pool]).(*standPlace).stand }

// PutBack returns what was set aside, unless it has gone meanwhile.
func (g *Group) PutBack(pool string, clock *fair.Clock, stands []*Stand) {
	for _, s := range stands {
		if p := s.places[pool]; p != nil && p.index < 0 && g.stands[s.Tenant] == s {
			p.key = clock.Time(s.Tenant)
			heap.Push(g.heaps[pool], p)
		}
	}
}

// Charge starts a task on a tenant's account; Correct settles it to what was used.
func (b *Board) Charge(l *Lease, seconds float64) {
	l.Charged = seconds
	b.Clock(l.Pool, l.Kind).Start(l.Tenant, seconds, b.Weight(l.Tenant))
}

// Correct books what a lease used beyond or below what was charged for it.
func (b *Board) Correct(l *Lease, used float64) {
	b.Clock(l.Pool, l.Kind).Correct(l.Tenant, used-l.Charged, b.Weight(l.Tenant))
	if used < l.Charged {
		b.lowered(l.Pool, l.Kind, l.Tenant)
	}
	l.Charged = used
}

// lowered moves a tenant whose virtual time went back up in the heaps of a pool.
func (b *Board) lowered(pool string, kind models.KindName, tenant int32) {
	q := b.queues[kind][tenant]
	if q == nil {
		return
	}
	now := b.Clock(pool, kind).Time(tenant)
	for _, s := range q.stands {
		if p := s.places[pool]; p != nil && p.index >= 0 && now < p.key {
			p.key = now
			heap.Fix(s.group.heaps[pool], p.index)
		}
	}
}

// regate looks at the gates of lines again after what they depend on has changed.
func (b *Board) regate(concerns func(*Line) bool) {
	for _, kind := range b.order {
		for _, q := range kind {
			for _, l := range q.Lines {
				if concerns(l) {
					b.offer(l)
				}
			}
		}
	}
}
