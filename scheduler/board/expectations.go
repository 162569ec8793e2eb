package board

import (
	"nightshift/models"
	"nightshift/scheduler/budget"
)

// Expect says by what tasks are weighed that say nothing of what they will spend.
func (b *Board) Expect(by func(tenant, class int32) budget.Expected) {
	b.money.expect = by
	for at, e := range b.money.learned { // any order: each on its own
		e.of = by(at.tenant, at.class)
	}
	for _, a := range b.money.all { // any order: each on its own
		b.reweigh(a)
	}
}

// Learned says that something new is known of what tasks of a class spend.
func (b *Board) Learned(tenant, class int32) {
	e := b.money.learned[tenantClass{tenant, class}]
	if e == nil {
		return
	}
	now := b.money.expect(tenant, class)
	if now == e.of {
		return
	}
	e.of = now
	for a := range e.counted { // any order: each on its own
		b.reweigh(a)
	}
}

// Priced says that the price of a model has changed, as one tenant or all see it.
func (b *Board) Priced(model string) {
	for at := range b.money.learned { // any order: each on its own
		if class := b.Classes[at.class]; class != nil && class.Model == model {
			b.Learned(at.tenant, at.class)
		}
	}
}

func (b *Board) expectation(tenant, class int32) *expectation {
	at := tenantClass{tenant, class}
	e := b.money.learned[at]
	if e == nil {
		e = &expectation{of: b.money.expect(tenant, class), counted: map[*Account]bool{}}
		b.money.learned[at] = e
	}
	return e
}

// AskOf is what a task is expected to spend: what it says itself, else what was seen of its like, else what its tokens cost.
func (b *Board) AskOf(row *models.Task) budget.Ask {
	return b.askOf(row.Env, row.Class, row.CostMicro, row.Tokens)
}

func (b *Board) askOf(env, class int32, micro, tokens int64) budget.Ask {
	said := budget.Said(micro, tokens)
	if said.KnowsMicro && said.KnowsTokens {
		return said
	}
	return b.expectation(b.TenantOf(env), class).of.Of(said)
}

// holdMoney counts an attempt that begins or ends.
func (b *Board) holdMoney(row *models.Task, sign int64) {
	if !b.pays(row) {
		return
	}
	for _, a := range b.Accounts(row) {
		if row.StartedAt >= a.Since {
			b.reserve(a, row, sign)
		}
	}
}

func (b *Board) reserve(a *Account, row *models.Task, sign int64) {
	said := budget.Said(row.CostMicro, row.Tokens)
	a.live += sign
	a.own.Reserved = a.own.Reserved.Plus(models.Amount{Micro: sign * said.Micro, Tokens: sign * said.Tokens})
	a.Purse.Reserve(b.AskOf(row), sign)
	if !said.KnowsMicro || !said.KnowsTokens {
		at := looseAt{row.Class, said.Tokens}
		n := a.loose[at]
		if n == nil {
			n = &models.Amount{}
			a.loose[at] = n
			b.countsBy(a, b.TenantOf(row.Env), row.Class, 1)
		}
		if !said.KnowsMicro {
			n.Micro += sign
		}
		if !said.KnowsTokens {
			n.Tokens += sign
		}
		if *n == (models.Amount{}) {
			delete(a.loose, at)
			b.countsBy(a, b.TenantOf(row.Env), row.Class, -1)
		}
	}
	b.touchPurse(a)
	b.forget(a)
}

// countsBy says in how many more ways an account counts by what is known of a class; n below zero takes them off again.
func (b *Board) countsBy(a *Account, tenant, class int32, n int) {
	if a.asking[class] += n; a.asking[class] > 0 {
		b.expectation(tenant, class).counted[a] = true
		return
	}
	delete(a.asking, class)
	delete(b.expectation(tenant, class).counted, a)
}

// reweigh counts what is reserved by what is known now, and orders anew what waits.
func (b *Board) reweigh(a *Account) {
	a.Purse.Reserved, a.Purse.Unknown = a.own.Reserved, models.Amount{}
	tenant := b.tenantOfAccount(a)
	for at, n := range a.loose { // any order: a sum
		ask := b.expectation(tenant, at.class).of.Of(budget.Said(0, at.tokens))
		if ask.KnowsMicro {
			a.Purse.Reserved.Micro += n.Micro * ask.Micro
		} else {
			a.Purse.Unknown.Micro += n.Micro
		}
		if ask.KnowsTokens {
			a.Purse.Reserved.Tokens += n.Tokens * ask.Tokens
		} else {
			a.Purse.Unknown.Tokens += n.Tokens
		}
	}
	b.requeue(a)
	b.touchPurse(a)
}

func (b *Board) tenantOfAccount(a *Account) int32 {
	if a.Workflow {
		return b.TenantOf(a.Budget.Env)
	}
	return a.Budget.Tenant
}
