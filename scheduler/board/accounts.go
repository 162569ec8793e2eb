package board

import (
	"maps"
	"slices"
	"time"

	"nightshift/models"
	"nightshift/scheduler/budget"
	"nightshift/scheduler/calendar"
)

// Account is a budget of a tenant, or the limits of a workflow's cost and tokens, with what was spent and is reserved of it.
// What is reserved follows from the leases alone.
type Account struct {
	ID           models.ID
	Budget       models.Budget // of a tenant; zero: it is of a workflow, or was deleted
	Workflow     bool
	Since, Until models.Instant // of the period that counts
	Purse        budget.Purse

	sums   map[models.Instant]models.Amount // what was spent in each of the last periods, by its beginning
	known  bool                             // of a workflow: its limits are
	live   int64                            // leases that count
	own    budget.Purse                     // of those, what their rows say
	loose  map[looseAt]*models.Amount       // and of how many the rows say nothing
	asking map[int32]int                    // by class, how many of those and of the queues count by what is known of it
	back   map[models.LineID]*backing       // what has come back and stands in lines
	queues purseHeap
}

// looseAt are tasks of a class whose rows say as many tokens.
type looseAt struct {
	class  int32
	tokens int64 // 0: they do not
}

// backing is tasks of a line that have come back from behind the gate of an account and have not started.
type backing struct {
	n     int
	purse budget.Purse // Reserved and Unknown alone
}

// accounts are all of them, with what they are found by.
type accounts struct {
	all     map[models.ID]*Account
	of      map[int32]*purses // by tenant
	rolls   Agenda            // when periods end
	queues  map[purseID]*purseQueue
	lower   map[purseID]bool   // of those, which are looked at whether their tasks get other models
	touched map[models.ID]bool // that may cover more than when they were last looked at
	backs   map[models.ID]back
	expect  func(tenant, class int32) budget.Expected
	learned map[tenantClass]*expectation
}

// purses are the budgets of a tenant.
type purses struct {
	all     []*Account
	byPlace map[purseAt][]*Account
}

type purseAt struct{ env, class int32 }

type tenantClass struct{ tenant, class int32 }

// expectation is what tasks of a class are expected to spend that say nothing themselves, and which accounts count by it.
type expectation struct {
	of      budget.Expected
	counted map[*Account]bool
}

func newAccounts() accounts {
	return accounts{
		all: map[models.ID]*Account{}, of: map[int32]*purses{}, queues: map[purseID]*purseQueue{}, lower: map[purseID]bool{}, touched: map[models.ID]bool{},
		backs: map[models.ID]back{}, learned: map[tenantClass]*expectation{},
		expect: func(int32, int32) budget.Expected { return budget.Expected{} },
	}
}

// BudgetsOf are the budgets that tasks of an environment, a type and a model count in.
func (b *Board) BudgetsOf(env int32, taskType, model string) (out []*Account) {
	p := b.money.of[b.TenantOf(env)]
	if p == nil {
		return nil
	}
	for _, a := range p.all {
		switch g := &a.Budget; {
		case g.Scope == models.TenantScope,
			g.Scope == models.EnvironmentScope && g.Env == env,
			g.Scope == models.TypeScope && g.Name == taskType,
			g.Scope == models.ModelScope && g.Name == model:
			out = append(out, a)
		}
	}
	return out
}

// Accounts are those that a task counts in, its workflow's last.
func (b *Board) Accounts(row *models.Task) []*Account {
	var of []*Account
	if p := b.money.of[b.TenantOf(row.Env)]; p != nil {
		at := purseAt{row.Env, row.Class}
		known := false
		if of, known = p.byPlace[at]; !known {
			if class := b.Classes[row.Class]; class != nil {
				of = b.BudgetsOf(row.Env, class.Type, class.Model)
			}
			of = slices.Clip(of)
			p.byPlace[at] = of
		}
	}
	if row.Has(models.SpendsFlow) && !row.Workflow.IsZero() {
		of = append(of, b.flowAccount(row.Env, row.Workflow))
	}
	return of
}

// pays says that a task counts anywhere.
func (b *Board) pays(row *models.Task) bool {
	return len(b.money.all) > 0 || row.Has(models.SpendsFlow)
}

// Short is the first account that does not cover a task, nil when all do. One of a workflow that is not known yet holds
// nothing back: whoever starts the task reads it first.
func (b *Board) Short(row *models.Task) *Account {
	if !b.pays(row) {
		return nil
	}
	for _, a := range b.Accounts(row) {
		if a.Lacks(b.AskOf(row)) {
			return a
		}
	}
	return nil
}

// Lacks says that an account does not cover what a task asks for, as far as it is known.
func (a *Account) Lacks(ask budget.Ask) bool { return !a.open() && !a.Purse.Covers(ask) }

func (a *Account) open() bool { return a.Workflow && !a.known }

// Shorts are all accounts that do not cover a task.
func (b *Board) Shorts(row *models.Task) (out []*Account) {
	if !b.pays(row) {
		return nil
	}
	for _, a := range b.Accounts(row) {
		if a.Lacks(b.AskOf(row)) {
			out = append(out, a)
		}
	}
	return out
}

func newAccount(id models.ID) *Account {
	return &Account{ID: id, Until: models.Forever, loose: map[looseAt]*models.Amount{}, sums: map[models.Instant]models.Amount{}, asking: map[int32]int{}, back: map[models.LineID]*backing{}}
}

// account finds an account, or makes one that limits nothing: of a budget that was deleted, or a workflow to be read.
func (b *Board) account(id models.ID) *Account {
	a := b.money.all[id]
	if a == nil {
		a = newAccount(id)
		b.money.all[id] = a
	}
	return a
}

func (b *Board) flowAccount(env int32, workflow models.ID) *Account {
	a := b.account(workflow)
	a.Workflow, a.Budget.Env = true, env
	return a
}

// forget lets go of an account that nobody needs.
func (b *Board) forget(a *Account) {
	if a.Budget.ID.IsZero() && !a.known && a.live == 0 && len(a.queues) == 0 {
		delete(b.money.all, a.ID)
		delete(b.money.touched, a.ID)
	}
}

// PutBudget adds or replaces a budget; what runs counts in it at once. Where its days begin in another zone from now on, what
// was spent in the period so far goes over into the period as it is now: it answers how much, and from which.
func (b *Board) PutBudget(g models.Budget, now models.Instant) (a *Account, moved models.Amount, from models.Instant) {
	a = b.account(g.ID)
	p := b.money.of[g.Tenant]
	if p == nil {
		p = &purses{}
		b.money.of[g.Tenant] = p
	}
	if a.Budget.ID.IsZero() {
		p.all = append(p.all, a)
		slices.SortFunc(p.all, func(x, y *Account) int { return x.ID.Compare(y.ID) })
	}
	p.byPlace = map[purseAt][]*Account{}
	from = a.Since
	a.Budget = g
	a.Since, a.Until = a.SpanAt(now)
	if a.Since != from {
		moved = a.sums[from]
		delete(a.sums, from)
		a.sums[a.Since] = a.sums[a.Since].Plus(moved)
	}
	a.Purse = budget.Purse{LimitMicro: g.LimitMicro, LimitTokens: g.LimitTokens, Spent: a.sums[a.Since]}
	b.money.rolls.Set(g.ID, a.Until)
	b.recount(a)
	return a, moved, from
}

// recount counts the leases of an account anew.
func (b *Board) recount(a *Account) {
	b.unloosen(a)
	a.live, a.own = 0, budget.Purse{}
	for _, lease := range b.Leases { // any order: a sum
		if row := lease.Row(); lease.Tenant == a.Budget.Tenant && row.StartedAt >= a.Since && slices.Contains(b.Accounts(row), a) {
			b.reserve(a, row, 1)
		}
	}
	b.reweigh(a)
}

// unloosen forgets the leases of an account of which the rows say nothing.
func (b *Board) unloosen(a *Account) {
	for at := range a.loose { // any order: each on its own
		b.countsBy(a, a.Budget.Tenant, at.class, -1)
	}
	a.loose = map[looseAt]*models.Amount{}
}

// DropBudget deletes a budget: what waits for it comes back.
func (b *Board) DropBudget(id models.ID) {
	a := b.money.all[id]
	if a == nil {
		return
	}
	p := b.money.of[a.Budget.Tenant]
	p.all = slices.DeleteFunc(p.all, func(o *Account) bool { return o == a })
	p.byPlace = map[purseAt][]*Account{}
	b.money.rolls.Set(id, 0)
	if len(p.all) == 0 {
		delete(b.money.of, a.Budget.Tenant)
	}
	b.unloosen(a)
	a.Budget, a.Purse, a.own, a.live = models.Budget{}, budget.Purse{}, budget.Purse{}, 0
	a.Since, a.Until, a.sums = 0, models.Forever, map[models.Instant]models.Amount{}
	b.requeue(a)
	b.touchPurse(a)
	b.forget(a)
}

// zoneOf is the zone of a budget. One that can't be read any more is UTC.
func zoneOf(name string) *time.Location {
	zone, err := calendar.Zone(name)
	if err != nil {
		return time.UTC
	}
	return zone
}

// SpanAt is the period of a budget that a moment lies in.
func (a *Account) SpanAt(at models.Instant) (since, until models.Instant) {
	return budget.Span(a.Budget.Period, at, zoneOf(a.Budget.Timezone))
}

// BudgetByID finds a budget of a tenant.
func (b *Board) BudgetByID(id models.ID) *Account {
	if a := b.money.all[id]; a != nil && !a.Budget.ID.IsZero() {
		return a
	}
	return nil
}

// TenantBudgets are the budgets of a tenant by id; the slice is the board's own.
func (b *Board) TenantBudgets(tenant int32) []*Account {
	if p := b.money.of[tenant]; p != nil {
		return p.all
	}
	return nil
}

// SetFlow says what a workflow may spend and has spent.
func (b *Board) SetFlow(env int32, workflow models.ID, limits models.FlowBudget, used models.Spend) {
	if !limits.Limited() && b.money.all[workflow] == nil {
		return
	}
	a := b.flowAccount(env, workflow)
	a.known = true
	a.Purse.LimitMicro, a.Purse.LimitTokens = limitOf(limits.CostMicro), limitOf(limits.Tokens)
	a.Purse.Spent = models.Amount{Micro: used.CostMicro, Tokens: used.Tokens}
	b.requeue(a)
	b.touchPurse(a)
}

func limitOf(v int64) *int64 {
	if v == 0 {
		return nil
	}
	return &v
}

// LetGoFlow says that a workflow is not in hand any more.
func (b *Board) LetGoFlow(workflow models.ID) {
	if a := b.money.all[workflow]; a != nil {
		a.known = false
		b.forget(a)
	}
}

// Spent books what an attempt that started at a moment has spent; it says in which period that was, and whether that counts
// still.
func (b *Board) Spent(a *Account, started models.Instant, amount models.Amount) (since models.Instant, counts bool) {
	since, _ = a.SpanAt(started)
	a.sums[since] = a.sums[since].Plus(amount)
	if since != a.Since {
		return since, false
	}
	a.Purse.Spent = a.sums[since]
	b.touchPurse(a)
	return since, true
}

// lately is how far back a period may begin that becomes the present one when the zone of a budget changes, in microseconds.
const lately = 3 * 24 * 3600 * 1_000_000

// NextPeriod is when the first period ends of a budget.
func (b *Board) NextPeriod() models.Instant { return b.money.rolls.Next() }

// BeginPeriods begins the periods that are due anew.
func (b *Board) BeginPeriods(now models.Instant) {
	for b.money.rolls.Next() <= now {
		for _, id := range b.money.rolls.Due(now, 1000) {
			a := b.money.all[id]
			a.Since, a.Until = a.SpanAt(now)
			maps.DeleteFunc(a.sums, func(since models.Instant, _ models.Amount) bool { return since < a.Since-lately })
			a.Purse.Spent = a.sums[a.Since]
			b.money.rolls.Set(id, a.Until)
			b.recount(a)
		}
	}
}
