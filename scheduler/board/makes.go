package board

import (
	"encoding/json"
	"slices"

	"nightshift/models"
	"nightshift/scheduler/fair"
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
}

// Stand is what one tenant offers to the workers of a make, in one kind.
type Stand struct {
	Tenant int32
	Lines  []*Line

	account *fair.Account
	index   int // in the heap, -1: it is set aside
}

// makeOf names what decides which tasks a worker could ever run.
func makeOf(w *models.Worker) string {
	text, err := json.Marshal([]any{
		w.Tenant, w.Env, w.Pool, w.TaskTypes, w.Lanes, w.Kinds, w.CPUMilli, w.MemoryMB, w.DiskMB, w.GPUs, w.Models, w.Permissions, w.Labels,
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
		return
	}
	for _, other := range b.Workers { // any order: whichever, they are alike
		if other.Make == m {
			m.like = other
			return
		}
	}
}

func (m *Make) add(b *Board, l *Line) {
	if !b.Fits(m.like, l.ID.Class) || !b.Serves(m.like, l.ID.Env, b.Lanes[l.ID.Lane]) {
		return
	}
	s := m.stands[l.Kind][l.Tenant]
	if s == nil {
		s = &Stand{Tenant: l.Tenant, account: b.Clock(m.pool, l.Kind).Of(l.Tenant)}
		m.stands[l.Kind][l.Tenant] = s
		m.heaps[l.Kind].push(s)
	}
	s.Lines = append(s.Lines, l)
}

func (m *Make) remove(l *Line) {
	s := m.stands[l.Kind][l.Tenant]
	if s == nil {
		return
	}
	i := slices.Index(s.Lines, l)
	if i < 0 {
		return
	}
	s.Lines = slices.Delete(s.Lines, i, i+1)
	if len(s.Lines) == 0 {
		delete(m.stands[l.Kind], l.Tenant)
		if s.index >= 0 {
			m.heaps[l.Kind].remove(s.index)
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
		if s.index < 0 && m.stands[kind][s.Tenant] == s {
			m.heaps[kind].push(s)
		}
	}
}
