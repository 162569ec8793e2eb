package board

import (
	"nightshift/models"
)

// ModelFailed notes a failure of the provider on a model that is known; opened says that its breaker opens by it.
func (b *Board) ModelFailed(tenant int32, name, class string, now models.Instant) (row models.ModelBreaker, opened bool) {
	u := b.modelUse(tenant, name)
	if u.Entry == nil || !u.Breaker.Failed(class, now) {
		b.disuse(u)
		return row, false
	}
	b.judgeBreaker(u, now)
	return u.row(), true
}

// ModelWorked notes a success; shut says that the breaker shuts by it.
func (b *Board) ModelWorked(tenant int32, name string, now models.Instant) (row models.ModelBreaker, shut bool) {
	u := b.UseOfModel(tenant, name)
	if u == nil {
		return row, false
	}
	if shut = u.Breaker.Worked(now); shut {
		b.judgeBreaker(u, now)
		b.modelsChanged([]*ModelUse{u}, tenant)
	}
	row = u.row()
	b.disuse(u)
	return row, shut
}

func (u *ModelUse) row() models.ModelBreaker {
	return models.ModelBreaker{Tenant: u.Tenant, Model: u.Name, Opened: u.Breaker.Opened, Until: u.Breaker.Until, Class: u.Breaker.Class}
}

// Open says that the breaker was open when it was last judged.
func (u *ModelUse) Open() bool { return u.open }

// judgeBreaker opens or shuts the lines of a model as its breaker says.
func (b *Board) judgeBreaker(u *ModelUse, now models.Instant) {
	ref, until := models.ModelRef{Tenant: u.Tenant, Name: u.Name}, models.Instant(0)
	if delete(b.models.broken, ref); u.Breaker.Opened > 0 {
		b.models.broken[ref] = u
	}
	open := u.Breaker.Open(now)
	if open {
		until = u.Breaker.Until
	}
	b.models.agenda.Set(u.id, until)
	if open == u.open {
		return
	}
	if u.open = open; !open {
		b.modelsChanged([]*ModelUse{u}, u.Tenant)
		return
	}
	b.rejudge(u)
}
