package board

import (
	"cmp"
	"slices"
	"time"

	"nightshift/models"
	"nightshift/scheduler/calendar"
	"nightshift/scheduler/rate"
)

func modelTerms(m *models.Model) rate.Terms {
	if m.TokensPerMinute == nil {
		return rate.Terms{}
	}
	return rate.Terms{Limit: *m.TokensPerMinute, Per: time.Minute}
}

// SpendOn takes tokens of a model, or gives back what was taken too many. Its bucket may go into debt.
func (b *Board) SpendOn(tenant int32, name string, n int64, now models.Instant) {
	e := b.models.resolve(tenant, name)
	if e == nil || n == 0 {
		return
	}
	terms := modelTerms(&e.Model)
	if terms.Limit == 0 {
		return
	}
	e.tokens.Take(terms, now, n)
	b.models.spenders[e.Ref()] = true
	b.judgeModelTokens(e, now)
}

func (b *Board) judgeModelTokens(e *ModelEntry, now models.Instant) {
	dry, opens := e.tokens.Dry(modelTerms(&e.Model), now)
	b.models.agenda.Set(e.id, opens)
	if dry == e.dry {
		return
	}
	e.dry = dry
	b.offerModel(e)
}

// openModels opens what is due by time alone, and says whether there was anything.
func (b *Board) openModels(now models.Instant) (any bool) {
	for b.models.agenda.Next() <= now {
		for _, id := range b.models.agenda.Due(now, 1000) {
			any = true
			switch x := b.models.byID[id].(type) {
			case *ModelUse:
				b.judgeBreaker(x, now)
			case *ModelEntry:
				b.judgeModelTokens(x, now)
			default:
				b.models.agenda.Set(id, 0)
			}
		}
	}
	return any
}

// ModelLevels are the buckets that changed since they were last asked for, by tenant and name.
func (b *Board) ModelLevels() (out []models.ModelLevel) {
	for ref := range b.models.spenders { // any order: sorted below
		if e := b.models.entries[ref]; e != nil && e.TokensPerMinute != nil {
			out = append(out, models.ModelLevel{Tenant: ref.Tenant, Model: ref.Name, Credit: e.tokens.Credit, At: e.tokens.At})
		}
	}
	clear(b.models.spenders)
	slices.SortFunc(out, func(a, b models.ModelLevel) int {
		return cmp.Or(cmp.Compare(a.Tenant, b.Tenant), cmp.Compare(a.Model, b.Model))
	})
	return out
}

func peaksOf(m *models.Model) (out []peak) {
	for _, p := range m.OffPeak {
		windows, err := calendar.ParseWindows("off_peak", []models.Window{p.Window})
		if err == nil { // it was read before it was stored
			out = append(out, peak{windows: windows, factor: p.Factor})
		}
	}
	return out
}

// OffPeak is what the model's price is multiplied by at a moment: the least factor of the times that it lies in.
func (e *ModelEntry) OffPeak(now models.Instant) float64 {
	factor := 1.0
	for i := range e.peaks {
		p := &e.peaks[i]
		if p.until <= now {
			open, until := p.windows.At(now.Time())
			if p.open, p.until = open, never; !until.IsZero() {
				p.until = models.InstantOf(until)
			}
		}
		if p.open {
			factor = min(factor, p.factor)
		}
	}
	return factor
}

// Loaded says that a worker that serves the tenant has a model loaded.
func (b *Board) Loaded(tenant int32, name string) bool {
	for _, m := range b.makes {
		if w := &m.like.Worker; (w.Tenant == 0 || w.Tenant == tenant) && (w.AnyModel || slices.Contains(w.Models, name)) {
			return true
		}
	}
	return false
}
