package route

import (
	"cmp"
	"slices"
	"strings"

	"nightshift/models"
)

// Book is what the tasks of all tenants saw of models. Under an empty model's name it holds what a tenant's tasks of a type used
// on any.
type Book struct {
	pages map[pageID]*page
	dirty []*page // changed since they were last told, in any order
	about map[aboutID][]*page
}

type aboutID struct {
	tenant int32
	model  string
}

type pageID struct {
	tenant     int32
	typ, model string
}

type page struct {
	models.ModelSeen
	dirty bool

	low   float64 // as of what was said and seen then
	said  float64
	known bool
	fresh bool
}

// NewBook knows nothing yet.
func NewBook() *Book { return &Book{pages: map[pageID]*page{}, about: map[aboutID][]*page{}} }

func (b *Book) page(tenant int32, typ, model string) *page {
	id := pageID{tenant, typ, model}
	p := b.pages[id]
	if p == nil {
		p = &page{ModelSeen: models.ModelSeen{Tenant: tenant, Type: typ, Model: model}}
		b.pages[id] = p
		about := aboutID{tenant, model}
		b.about[about] = append(b.about[about], p)
	}
	return p
}

func (b *Book) changed(p *page) {
	p.fresh = false
	if !p.dirty {
		p.dirty = true
		b.dirty = append(b.dirty, p)
	}
}

// Judge adds how good a result was; before is what the same source said of it earlier, nil when nothing.
func (b *Book) Judge(tenant int32, typ, model string, score float64, before *float64) {
	p := b.page(tenant, typ, model)
	Judge(&p.ModelSeen, score, before)
	b.changed(p)
}

// Ran adds what a run used.
func (b *Book) Ran(tenant int32, typ, model string, u Use, seconds float64) {
	for _, name := range []string{model, ""} {
		p := b.page(tenant, typ, name)
		Ran(&p.ModelSeen, u, seconds)
		b.changed(p)
	}
}

// Of is what was seen of a model. What it uses is taken from the type's other models while it has not run itself.
func (b *Book) Of(tenant int32, typ, model string) models.ModelSeen {
	seen := models.ModelSeen{Tenant: tenant, Type: typ, Model: model}
	if p := b.pages[pageID{tenant, typ, model}]; p != nil {
		seen = p.ModelSeen
	}
	return seen
}

// Uses is what a run on the model is expected to use.
func (b *Book) Uses(tenant int32, typ, model string, tokens int64) Use {
	seen := b.Of(tenant, typ, model)
	if seen.Runs == 0 {
		seen = b.Of(tenant, typ, "")
	}
	return Expect(tokens, seen)
}

// Low is the quality that a model has at least at tasks of a type.
func (b *Book) Low(tenant int32, typ string, m *models.Model) float64 {
	said, known := m.QualityFor(typ)
	p := b.page(tenant, typ, m.Name)
	if !p.fresh || p.said != said || p.known != known {
		p.low, p.said, p.known, p.fresh = Low(said, known, p.Good, p.Judged), said, known, true
	}
	return p.low
}

// Changes lists what was seen since the last call, at most most of it; the rest comes next time.
func (b *Book) Changes(most int) []models.ModelSeen {
	slices.SortFunc(b.dirty, func(a, b *page) int {
		return cmp.Or(cmp.Compare(a.Tenant, b.Tenant), strings.Compare(a.Type, b.Type), strings.Compare(a.Model, b.Model))
	})
	n := min(len(b.dirty), most)
	out := make([]models.ModelSeen, 0, n)
	for _, p := range b.dirty[:n] {
		p.dirty = false
		out = append(out, p.ModelSeen)
	}
	b.dirty = slices.Delete(b.dirty, 0, n)
	return out
}

// Restore takes in what was saved; what was seen since goes first.
func (b *Book) Restore(saved []models.ModelSeen) {
	for _, s := range saved {
		if p := b.page(s.Tenant, s.Type, s.Model); p.Judged == 0 && p.Runs == 0 {
			p.ModelSeen, p.fresh = s, false
		}
	}
}

// About is what a tenant's tasks saw of a model, by type.
func (b *Book) About(tenant int32, model string) (out []models.ModelSeen) {
	for _, p := range b.about[aboutID{tenant, model}] {
		if p.Judged > 0 || p.Runs > 0 {
			out = append(out, p.ModelSeen)
		}
	}
	slices.SortFunc(out, func(a, b models.ModelSeen) int { return strings.Compare(a.Type, b.Type) })
	return out
}
