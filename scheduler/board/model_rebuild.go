package board

import (
	"fmt"

	"nightshift/models"
	"nightshift/scheduler/rate"
)

func (b *Board) restoreModels(s *models.ModelSnapshot, now models.Instant) {
	for _, m := range s.Models {
		b.PutModel(m, m.UpdatedAt)
	}
	for _, row := range s.Breakers {
		u := b.modelUse(row.Tenant, row.Model)
		u.Breaker.Opened, u.Breaker.Until, u.Breaker.Class = row.Opened, row.Until, row.Class
		b.judgeBreaker(u, now)
	}
}

// restoreModelTokens sets the buckets as they were saved, and charges what has started since.
func (b *Board) restoreModelTokens(s *models.Snapshot) {
	since := map[*ModelEntry]models.Instant{}
	for _, e := range b.models.entries { // any order: each on its own
		since[e] = e.UpdatedAt
	}
	for _, l := range s.Models.Levels {
		if e := b.models.entries[models.ModelRef{Tenant: l.Tenant, Name: l.Model}]; e != nil && l.At >= since[e] {
			e.tokens, since[e] = rate.Bucket{Credit: l.Credit, At: l.At}, l.At
		}
	}
	for i := range s.Running {
		row := &s.Running[i]
		if class := b.Classes[row.Class]; class != nil && class.Model != "" {
			tenant := b.TenantOf(row.Env)
			if e := b.models.resolve(tenant, class.Model); e != nil && row.StartedAt > since[e] {
				b.SpendOn(tenant, class.Model, row.Tokens, row.StartedAt)
			}
		}
	}
	for _, e := range b.models.entries { // any order: each on its own
		b.judgeModelTokens(e, s.Now)
	}
	for line := range b.models.parked { // any order: a set; nobody knows what has changed since they were looked at
		b.models.looks[line] = models.Mark{}
	}
	clear(b.models.spenders)
}

// KeepModels takes over what a process remembers beyond its rows: buckets, where the rate is the same, and failures that have
// not opened a breaker.
func (b *Board) KeepModels(old *Board, now models.Instant) {
	for ref, before := range old.models.entries { // any order: each on its own
		e, terms := b.models.entries[ref], modelTerms(&before.Model)
		if e == nil || terms.Limit == 0 || terms != modelTerms(&e.Model) {
			continue
		}
		e.tokens = before.tokens
		b.models.spenders[ref] = true
		b.judgeModelTokens(e, now)
	}
	for ref, before := range old.models.uses { // any order: each on its own
		if before.Breaker.Quiet() {
			continue
		}
		u := b.modelUse(ref.Tenant, ref.Name)
		u.Breaker.Keep(before.Breaker)
		b.disuse(u)
	}
}

// checkModels compares models, and what runs and waits, with what the rows say.
func (b *Board) checkModels(fresh *Board) error {
	for ref := range merged(b.models.entries, fresh.models.entries) { // any order: the first difference found will do
		got, want := b.models.entries[ref], fresh.models.entries[ref]
		if got == nil || want == nil || got.Running != want.Running || got.Version != want.Version {
			return fmt.Errorf("model %v: %+v on the board, %+v by the rows", ref, got, want)
		}
	}
	for ref := range merged(b.models.uses, fresh.models.uses) { // any order: the first difference found will do
		var got, want ModelUse
		if u := b.models.uses[ref]; u != nil {
			got = *u
		}
		if u := fresh.models.uses[ref]; u != nil {
			want = *u
		}
		if got.Live != want.Live || got.row() != want.row() && (got.Breaker.Opened > 0 || want.Breaker.Opened > 0) || len(got.lines) != len(want.lines) {
			return fmt.Errorf("model %v: %d live, %d lines, breaker %+v on the board; %d, %d, %+v by the rows", ref, got.Live, len(got.lines), got.Breaker, want.Live, len(want.lines), want.Breaker)
		}
	}
	for line := range merged(b.models.parked, fresh.models.parked) { // any order: the first difference found will do
		if got, want := b.models.parked[line], fresh.models.parked[line]; got != want {
			return fmt.Errorf("line %v: %d wait for a model on the board, %d by the rows", line, got, want)
		}
	}
	for line := range merged(b.models.stranded, fresh.models.stranded) { // any order: the first difference found will do
		if got, want := b.models.stranded[line], fresh.models.stranded[line]; got != want {
			return fmt.Errorf("line %v: stranded %v on the board, %v by the rows", line, got, want)
		}
	}
	return nil
}
