package board

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"

	"nightshift/models"
	"nightshift/scheduler/calendar"
	"nightshift/scheduler/rate"
	"nightshift/scheduler/route"
)

// ModelEntry is an entry of the table of models with what runs on it: the platform's over all tenants that have none of their
// own of that name.
type ModelEntry struct {
	models.Model
	Running int64

	id     models.ID // in the agenda
	uses   []*ModelUse
	peaks  []peak
	tokens rate.Bucket
	dry    bool // no token is left
}

// peak is a time in which a model costs another price.
type peak struct {
	windows calendar.Windows
	factor  float64
	open    bool
	until   models.Instant // that holds until then
}

// ModelUse is a model as one tenant sees it.
type ModelUse struct {
	Tenant  int32
	Name    string
	Entry   *ModelEntry // nil: nothing is known of the name
	Live    int64
	Breaker route.Breaker

	id    models.ID // in the agenda
	open  bool      // its breaker was, when last judged
	lines []*Line
}

// modelRooms are the models, and what waits for them.
type modelRooms struct {
	entries map[models.ModelRef]*ModelEntry
	names   map[int32][]string // of a tenant's own entries, or of the platform's, sorted
	uses    map[models.ModelRef]*ModelUse
	named   map[string][]*ModelUse
	broken  map[models.ModelRef]*ModelUse // whose breaker is not shut

	agenda   Agenda // when breakers end and tokens come back
	byID     map[models.ID]any
	serial   uint64
	spenders map[models.ModelRef]bool // whose tokens changed since ModelLevels was asked

	stranded map[models.LineID]bool        // lines whose model gives them nothing, of which each task may get another
	parked   map[models.LineID]int64       // tasks for which no model fits
	looks    map[models.LineID]models.Mark // of those, where they are looked at once more, from that mark on
}

func newModelRooms() modelRooms {
	return modelRooms{
		entries: map[models.ModelRef]*ModelEntry{}, names: map[int32][]string{}, uses: map[models.ModelRef]*ModelUse{}, named: map[string][]*ModelUse{},
		broken: map[models.ModelRef]*ModelUse{}, byID: map[models.ID]any{}, spenders: map[models.ModelRef]bool{},
		stranded: map[models.LineID]bool{}, parked: map[models.LineID]int64{}, looks: map[models.LineID]models.Mark{},
	}
}

// enter gives something a place in the agenda.
func (r *modelRooms) enter(x any) (id models.ID) {
	r.serial++
	binary.BigEndian.PutUint64(id[:], r.serial)
	r.byID[id] = x
	return id
}

func (r *modelRooms) leave(id models.ID) {
	r.agenda.Set(id, 0)
	delete(r.byID, id)
}

// resolve is the entry that a tenant sees under a name: its own, else the platform's.
func (r *modelRooms) resolve(tenant int32, name string) *ModelEntry {
	if tenant != 0 {
		if e := r.entries[models.ModelRef{Tenant: tenant, Name: name}]; e != nil {
			return e
		}
	}
	return r.entries[models.ModelRef{Name: name}]
}

// ModelAt is what a tenant's own or, without a tenant, the platform's entry of that name says; nil: there is none.
func (b *Board) ModelAt(ref models.ModelRef) *ModelEntry { return b.models.entries[ref] }

// ModelEntries counts the entries of a tenant, or of the platform.
func (b *Board) ModelEntries(tenant int32) int { return len(b.models.names[tenant]) }

// ModelsOf are the entries that a tenant sees, by name.
func (b *Board) ModelsOf(tenant int32) (out []*ModelEntry) {
	platform, own := b.models.names[0], []string(nil)
	if tenant != 0 {
		own = b.models.names[tenant]
	}
	for i, j := 0, 0; i < len(platform) || j < len(own); {
		switch {
		case j == len(own) || i < len(platform) && platform[i] < own[j]:
			out = append(out, b.models.entries[models.ModelRef{Name: platform[i]}])
			i++
		default:
			if i < len(platform) && platform[i] == own[j] {
				i++
			}
			out = append(out, b.models.entries[models.ModelRef{Tenant: tenant, Name: own[j]}])
			j++
		}
	}
	return out
}

// ModelNamed is the entry that a tenant sees under a name, nil when there is none.
func (b *Board) ModelNamed(tenant int32, name string) *ModelEntry {
	return b.models.resolve(tenant, name)
}

// UseOfModel is what a tenant has on a model; nil: nothing.
func (b *Board) UseOfModel(tenant int32, name string) *ModelUse {
	return b.models.uses[models.ModelRef{Tenant: tenant, Name: name}]
}

// modelUse finds or makes it.
func (b *Board) modelUse(tenant int32, name string) *ModelUse {
	r, ref := &b.models, models.ModelRef{Tenant: tenant, Name: name}
	u := r.uses[ref]
	if u == nil {
		u = &ModelUse{Tenant: tenant, Name: name}
		u.id = r.enter(u)
		r.uses[ref] = u
		r.named[name] = append(r.named[name], u)
		u.link(r.resolve(tenant, name))
	}
	return u
}

// disuse drops a use of which nothing is left.
func (b *Board) disuse(u *ModelUse) {
	if u.Live != 0 || len(u.lines) > 0 || !u.Breaker.Quiet() {
		return
	}
	r := &b.models
	u.link(nil)
	r.leave(u.id)
	delete(r.uses, models.ModelRef{Tenant: u.Tenant, Name: u.Name})
	if r.named[u.Name] = slices.DeleteFunc(r.named[u.Name], func(o *ModelUse) bool { return o == u }); len(r.named[u.Name]) == 0 {
		delete(r.named, u.Name)
	}
}

// link goes over to another entry, with what runs.
func (u *ModelUse) link(e *ModelEntry) {
	if old := u.Entry; old != nil {
		old.Running -= u.Live
		old.uses = slices.DeleteFunc(old.uses, func(o *ModelUse) bool { return o == u })
	}
	if u.Entry = e; e != nil {
		e.Running += u.Live
		e.uses = append(e.uses, u)
	}
}

// relink is link for a use that was there: what runs goes along, so that either entry may fill or open for all who see it.
func (b *Board) relink(u *ModelUse, e *ModelEntry) {
	old := u.Entry
	oldFull, full := old != nil && old.full(), e != nil && e.full()
	u.link(e)
	if old != nil && old.full() != oldFull {
		b.offerModel(old)
	}
	if e != nil && e.full() != full {
		b.offerModel(e)
	}
}

func (e *ModelEntry) full() bool { return e.MaxConcurrent != nil && e.Running >= *e.MaxConcurrent }

// PutModel adds or replaces an entry. What waits behind one that opens goes on offer, and what no model fitted is looked at anew.
func (b *Board) PutModel(m models.Model, now models.Instant) {
	r, ref := &b.models, m.Ref()
	e := r.entries[ref]
	terms := modelTerms(&m)
	if e == nil {
		e = &ModelEntry{tokens: rate.NewBucket(terms, now)}
		e.id = r.enter(e)
		r.entries[ref] = e
		at, _ := slices.BinarySearch(r.names[m.Tenant], m.Name)
		r.names[m.Tenant] = slices.Insert(r.names[m.Tenant], at, m.Name)
	} else if before := modelTerms(&e.Model); before != terms && terms.Limit > 0 {
		if before.Limit == 0 {
			e.tokens = rate.NewBucket(terms, now)
		} else {
			e.tokens.Change(before, terms, now)
		}
	}
	e.Model = m
	e.peaks = peaksOf(&m)
	r.spenders[ref] = true
	b.resolveAll(m.Name)
	b.judgeModelTokens(e, now)
	b.modelsChanged(e.uses, m.Tenant)
}

// DropModel forgets an entry: whoever saw it sees the platform's of that name, or none.
func (b *Board) DropModel(ref models.ModelRef) {
	r := &b.models
	e := r.entries[ref]
	if e == nil {
		return
	}
	delete(r.entries, ref)
	delete(r.spenders, ref)
	r.leave(e.id)
	r.names[ref.Tenant] = slices.DeleteFunc(r.names[ref.Tenant], func(name string) bool { return name == ref.Name })
	if len(r.names[ref.Tenant]) == 0 {
		delete(r.names, ref.Tenant)
	}
	uses := slices.Clone(e.uses)
	b.resolveAll(ref.Name)
	b.modelsChanged(uses, ref.Tenant)
}

// resolveAll lets all that use a name see the entry that is theirs now.
func (b *Board) resolveAll(name string) {
	for _, u := range b.models.named[name] {
		if e := b.models.resolve(u.Tenant, name); e != u.Entry {
			b.relink(u, e)
			b.rejudge(u)
		}
	}
}

// modelsChanged judges uses anew, and looks once more at what waits for a model: of a tenant, or of all.
func (b *Board) modelsChanged(uses []*ModelUse, tenant int32) {
	for _, u := range slices.Clone(uses) {
		b.rejudge(u)
	}
	for _, u := range b.brokenOf(tenant) { // a fallback of it may serve now
		b.rejudge(u)
	}
	for line := range b.models.parked { // any order: a set
		if tenant == 0 || b.TenantOf(line.Env) == tenant {
			b.models.looks[line] = models.Mark{}
		}
	}
}

// brokenOf are the uses whose breaker is not shut, of a tenant or of all.
func (b *Board) brokenOf(tenant int32) (out []*ModelUse) {
	for _, u := range b.models.broken { // any order: sorted below
		if tenant == 0 || u.Tenant == tenant {
			out = append(out, u)
		}
	}
	slices.SortFunc(out, func(a, b *ModelUse) int { return cmp.Or(cmp.Compare(a.Tenant, b.Tenant), cmp.Compare(a.Name, b.Name)) })
	return out
}

// rejudge looks again at whether the lines of a model may start anything.
func (b *Board) rejudge(u *ModelUse) {
	for _, l := range u.lines {
		b.strand(l)
		b.offer(l)
	}
}

// strand notes whether the tasks of a line are to get other models.
func (b *Board) strand(l *Line) {
	u, class := l.at.model, l.at.class
	if u == nil || !u.out(class) {
		delete(b.models.stranded, l.ID)
		return
	}
	if _, _, other := b.Substitute(l.Tenant, class); !class.Chosen && !other {
		delete(b.models.stranded, l.ID)
		return
	}
	b.models.stranded[l.ID] = true
}

// out says that nothing of a class is given to the model until somebody changes it or its breaker's time is over.
func (u *ModelUse) out(c *models.Class) bool {
	e := u.Entry
	if e == nil {
		return c.Hosted || c.Chosen
	}
	return !e.Enabled || e.Local() == c.Hosted || u.open || c.Chosen && !e.Serves(c.Type)
}

// Substitute is what serves in place of a model that was asked for by name: the model itself where it is served otherwise now,
// and while its breaker is open the first of its fallbacks that takes work.
func (b *Board) Substitute(tenant int32, c *models.Class) (name string, hosted, ok bool) {
	u := b.UseOfModel(tenant, c.Model)
	if u == nil || u.Entry == nil || !u.Entry.Enabled {
		return "", false, false
	}
	if !u.open {
		return c.Model, !u.Entry.Local(), u.Entry.Local() == c.Hosted
	}
	for _, name := range u.Entry.Fallbacks {
		e := b.models.resolve(tenant, name)
		if e == nil || !e.Enabled || !e.Serves(c.Type) {
			continue
		}
		if other := b.UseOfModel(tenant, name); other == nil || !other.open {
			return name, !e.Local(), true
		}
	}
	return "", false, false
}

// shut says that nothing of a class starts on the model now, for whatever reason but its tokens.
func (u *ModelUse) shut(c *models.Class) bool {
	return u.out(c) || u.Entry != nil && u.Entry.full() || u.Breaker.Opened > 0 && !u.open && u.Live > 0
}

// says why.
func (u *ModelUse) says(c *models.Class) string {
	e := u.Entry
	switch {
	case e == nil:
		return fmt.Sprintf("there is no model %s any more", u.Name)
	case !e.Enabled:
		return fmt.Sprintf("the model %s is disabled", u.Name)
	case u.open:
		return fmt.Sprintf("the breaker of the model %s is open after %s: it is tried again at %s", u.Name, u.Breaker.Class, u.Breaker.Until.Time().Format("2006-01-02T15:04:05Z"))
	case e.Local() == c.Hosted:
		return fmt.Sprintf("the model %s is served elsewhere now", u.Name)
	case c.Chosen && !e.Serves(c.Type):
		return fmt.Sprintf("the model %s does not serve tasks of type %s any more", u.Name, c.Type)
	case e.full():
		return fmt.Sprintf("the model %s runs %d tasks, of at most %d", u.Name, e.Running, *e.MaxConcurrent)
	}
	return fmt.Sprintf("one task at a time tries the model %s after %s", u.Name, u.Breaker.Class)
}

// enrolModel and strikeModel note which lines want a model.
func (b *Board) enrolModel(l *Line) {
	if l.at.class == nil || l.at.class.Model == "" {
		return
	}
	u := b.modelUse(l.Tenant, l.at.class.Model)
	l.at.model = u
	u.lines = append(u.lines, l)
	b.strand(l)
}

func (b *Board) strikeModel(l *Line) {
	u := l.at.model
	if u == nil {
		return
	}
	u.lines = slices.DeleteFunc(u.lines, func(o *Line) bool { return o == l })
	delete(b.models.stranded, l.ID)
	b.disuse(u)
}

// runsOn counts what runs on a model.
func (b *Board) runsOn(tenant int32, name string, n int64) {
	u := b.modelUse(tenant, name)
	u.Live += n
	if e := u.Entry; e != nil {
		was := e.full()
		if e.Running += n; e.full() != was {
			b.offerModel(e)
		}
	}
	if u.Breaker.Opened > 0 {
		for _, l := range u.lines {
			b.offer(l)
		}
	}
	b.disuse(u)
}

func (b *Board) offerModel(e *ModelEntry) {
	for _, u := range e.uses {
		for _, l := range u.lines {
			b.offer(l)
		}
	}
}
