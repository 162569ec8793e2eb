package board

import (
	"cmp"
	"encoding/json"
	"slices"

	"nightshift/models"
	"nightshift/scheduler/fair"
	"nightshift/scheduler/fit"
)

// Make is all workers that are alike: what one of them could ever run, all could. For each kind it keeps the tenants that
// offer anything these workers fit, the least served first; so a worker finds whose turn it is without a look at anybody
// whose work it could not do.
type Make struct {
	name    string
	pool    string
	workers int
	like    *Worker // any of them
	stands  [4]map[int32]*Stand
	heaps   [4]standHeap
	apart   []*Rule        // whose other side could run nothing here
	loose   [4][]models.ID // tasks that are let go though their kind or lane is held
}

// Stand is what one tenant offers to the workers of a make, in one kind.
type Stand struct {
	Tenant int32
	Offers []Offer // in no order

	of      *Make
	account *fair.Account
	use     *Use
	index   int // in the heap, -1: it is set aside, or its tenant is at its limit
}

// Offer is a line that is on offer. What chooses between the lines of a tenant stands beside it, so that the choice looks
// at no line that it does not take.
type Offer struct {
	Line  *Line
	Class *models.Class
	Head  models.Mark // of the first task by rank
	Timed bool        // a task with a deadline is at hand, or none by rank: the line itself says what would start
	Plain bool        // the class asks for a slot and nothing else
	First bool        // it is of production, which goes before what is not
}

// place is where a line stands among the offers of a stand.
type place struct {
	stand *Stand
	index int
}

// makeOf names what decides which tasks a worker could ever run.
func makeOf(w *models.Worker) string {
	text, err := json.Marshal([]any{
		w.Tenant, w.Env, w.Pool, w.TaskTypes, w.Lanes, w.Kinds, w.CPUMilli, w.MemoryMB, w.DiskMB, w.GPUs, w.Models, w.AnyModel, w.Permissions, w.AnyPermit, w.Labels, w.KindSlots == nil,
	})
	if err != nil {
		panic(err) // strings, numbers and lists of them always encode
	}
	return string(text)
}

// join puts a worker among those of its make; a new make looks at everything on offer once.
func (b *Board) join(w *Worker) {
	name := makeOf(&w.Worker)
	for _, m := range b.makes {
		if m.name == name {
			m.workers++
			w.Make = m
			return
		}
	}
	m := &Make{name: name, pool: w.Pool, workers: 1, like: w}
	w.Make = m
	b.makes = append(b.makes, m)
	for kind := range b.offers {
		m.stands[kind] = map[int32]*Stand{}
		var lines []*Line
		for _, g := range b.offers[kind].order {
			lines = append(lines, g.Lines...)
		}
		slices.SortFunc(lines, compareTenants)
		for _, l := range lines {
			m.add(b, l)
		}
	}
}

func (b *Board) part(w *Worker) {
	m := w.Make
	if m == nil {
		return
	}
	w.Make = nil
	if m.workers--; m.workers == 0 {
		b.makes = slices.DeleteFunc(b.makes, func(o *Make) bool { return o == m })
		m.clear()
		return
	}
	for _, other := range b.Workers { // any order: whichever, they are alike
		if other.Make == m {
			m.like = other
			return
		}
	}
}

// Makes are one active worker of each make that has any, by name.
func (b *Board) Makes() (out []*Worker) {
	of := make(map[*Make]*Worker, len(b.makes))
	for _, w := range b.Workers { // any order: minima
		if first := of[w.Make]; w.State == models.WorkerActive && (first == nil || w.ID.Compare(first.ID) < 0) {
			of[w.Make] = w
		}
	}
	for _, w := range of { // any order: sorted below
		out = append(out, w)
	}
	slices.SortFunc(out, func(a, b *Worker) int { return cmp.Or(cmp.Compare(a.Name, b.Name), a.ID.Compare(b.ID)) })
	return out
}

func (m *Make) add(b *Board, l *Line) {
	lane := b.Lanes[l.ID.Lane]
	if !b.Fits(m.like, l.ID.Class) || !b.Serves(m.like, l.ID.Env, lane) {
		return
	}
	if lane != nil && lane.rule != nil && b.contests(lane.rule, m.like) && lane.rule.holds[m.pool].Shut() {
		return
	}
	s := m.stands[l.Kind][l.Tenant]
	if s == nil {
		b.reenter(m, l)
		s = &Stand{Tenant: l.Tenant, of: m, account: b.Clock(m.pool, l.Kind).Of(l.Tenant), use: l.at.use, index: -1}
		m.stands[l.Kind][l.Tenant] = s
		if !s.use.full {
			m.heaps[l.Kind].push(s)
		}
	}
	class := b.Classes[l.ID.Class]
	l.places = append(l.places, place{s, len(s.Offers)})
	s.Offers = append(s.Offers, Offer{Line: l, Class: class, First: l.Production, Plain: class.CPUMilli+class.MemoryMB+class.DiskMB == 0 && fit.Cards(class) == 0})
	l.show()
}

// reenter lets a tenant come back to a pool where it had nothing on offer, whatever it did in others meanwhile, and a kind of
// which nobody had. With a new line they were idle there, with one that was on offer before they were held up; a tenant whose
// gate has opened is let in by putOnOffer.
func (b *Board) reenter(m *Make, l *Line) {
	first := true
	for _, o := range b.makes {
		if o.pool != m.pool {
			continue
		}
		if o.stands[l.Kind][l.Tenant] != nil {
			return
		}
		first = first && len(o.stands[l.Kind]) == 0
	}
	if first {
		b.kindClock(m.pool).Wake(int32(l.Kind))
	}
	switch clock := b.Clock(m.pool, l.Kind); {
	case l.shut:
	case l.fresh:
		clock.Wake(l.Tenant)
	default:
		clock.Unblock(l.Tenant)
	}
}

// reclock orders the tenants by the virtual times of the board's clocks.
func (m *Make) reclock(b *Board) {
	for kind := range m.stands {
		for tenant, s := range m.stands[kind] { // any order: each on its own; those of tenants at their limit too
			s.account = b.Clock(m.pool, models.KindName(kind)).Of(tenant)
		}
		heap := m.heaps[kind]
		m.heaps[kind] = heap[:0:0]
		for i := range heap {
			m.heaps[kind].push(heap[i].stand)
		}
	}
}

// show keeps what the line's offers say of its windows.
func (l *Line) show() {
	if len(l.places) == 0 {
		return
	}
	var head models.Mark
	first := l.ranks.first()
	if first != nil {
		head = byRank(&first.Row)
	}
	timed := first == nil || len(l.starts.entries) > 0
	for _, p := range l.places {
		o := &p.stand.Offers[p.index]
		o.Head, o.Timed = head, timed
	}
}

// withdraw takes the line off every stand.
func (l *Line) withdraw() {
	for _, p := range l.places {
		s := p.stand
		last := len(s.Offers) - 1
		if p.index != last {
			moved := s.Offers[last]
			s.Offers[p.index] = moved
			moved.Line.placeAt(s).index = p.index
		}
		s.Offers[last] = Offer{}
		if s.Offers = s.Offers[:last]; last > 0 {
			continue
		}
		delete(s.of.stands[l.Kind], l.Tenant)
		if s.index >= 0 {
			s.of.heaps[l.Kind].remove(s.index)
		}
	}
	l.places = l.places[:0]
}

func (l *Line) placeAt(s *Stand) *place {
	for i := range l.places {
		if l.places[i].stand == s {
			return &l.places[i]
		}
	}
	return nil
}

// clear lets go of the lines of a make that has no workers any more.
func (m *Make) clear() {
	for _, stands := range m.stands {
		for _, s := range stands { // any order: each on its own
			for _, o := range s.Offers {
				o.Line.places = slices.DeleteFunc(o.Line.places, func(p place) bool { return p.stand == s })
			}
		}
	}
}

// First is the stand of the least served tenant, nil when nothing is on offer.
func (m *Make) First(kind models.KindName) *Stand { return m.heaps[kind].first() }

// SetAside takes the first stand out until PutBack.
func (m *Make) SetAside(kind models.KindName) *Stand {
	s := m.heaps[kind][0].stand
	m.heaps[kind].remove(0)
	return s
}

// PutBack returns what was set aside, unless it has gone meanwhile.
func (m *Make) PutBack(kind models.KindName, stands []*Stand) {
	for _, s := range stands {
		if s.index < 0 && !s.use.full && m.stands[kind][s.Tenant] == s {
			m.heaps[kind].push(s)
		}
	}
}

// Loose lists the tasks of a kind that are let go of a hold, and may start on workers of this make beyond its room.
func (m *Make) Loose(kind models.KindName) []models.ID { return m.loose[kind] }

// Loose is a task that is let go of a hold: in a pool, or in all where none is named.
type Loose struct {
	*Entry
	Pool string
}

// Loosen replaces what is let go: each make lists what it could run and may hold back until the next time.
func (b *Board) Loosen(tasks []Loose) {
	for _, m := range b.makes {
		m.loose = [4][]models.ID{}
		for _, e := range tasks {
			lane := b.Lanes[e.Row.Lane]
			if lane != nil && (e.Pool == "" || e.Pool == m.pool) && b.Fits(m.like, e.Row.Class) && b.Serves(m.like, e.Row.Env, lane) && b.holdable(m.like, lane) {
				m.loose[lane.Kind] = append(m.loose[lane.Kind], e.Row.ID)
			}
		}
	}
}
