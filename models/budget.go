package models

import (
	"slices"
	"strconv"
	"strings"
)

// Amount is money and tokens.
type Amount struct {
	Micro  int64 // in millionths of a dollar
	Tokens int64
}

// MostAmount is where sums of money and tokens end: whoever reports nonsense again and again turns none round.
const MostAmount = 1 << 61

// plus sums two amounts of at most MostAmount.
func plus(a, b int64) int64 { return max(-MostAmount, min(a+b, MostAmount)) }

// Plus sums.
func (a Amount) Plus(o Amount) Amount {
	return Amount{plus(a.Micro, o.Micro), plus(a.Tokens, o.Tokens)}
}

// Minus is what is left of a without o; it may fall below zero.
func (a Amount) Minus(o Amount) Amount {
	return Amount{plus(a.Micro, -o.Micro), plus(a.Tokens, -o.Tokens)}
}

// BudgetScope is whose spending a budget counts.
type BudgetScope int16

// The scopes. All but that of an environment count over all environments of the tenant.
const (
	TenantScope BudgetScope = iota
	EnvironmentScope
	TypeScope
	ModelScope
)

var scopeNames = []string{"tenant", "environment", "type", "model"}

func (s BudgetScope) String() string { return scopeNames[s] }

// ParseScope reads a scope's name.
func ParseScope(name string) (BudgetScope, bool) {
	i := slices.Index(scopeNames, name)
	return BudgetScope(i), i >= 0
}

// BudgetPeriod is after which time a budget begins anew.
type BudgetPeriod int16

// The periods.
const (
	ByDay BudgetPeriod = iota
	ByMonth
	InTotal // it never begins anew
)

var periodNames = []string{"day", "month", "total"}

func (p BudgetPeriod) String() string { return periodNames[p] }

// ParsePeriod reads a period's name.
func ParsePeriod(name string) (BudgetPeriod, bool) {
	i := slices.Index(periodNames, name)
	return BudgetPeriod(i), i >= 0
}

// OnExhausted is what becomes of a task that a budget does not cover.
type OnExhausted int16

// What may become of it.
const (
	HoldTask   OnExhausted = iota // it waits
	RejectTask                    // it is refused when it is submitted; one that was accepted before waits
	DowngradeTask
)

var exhaustedNames = []string{"hold", "reject", "downgrade"}

func (o OnExhausted) String() string { return exhaustedNames[o] }

// ParseOnExhausted reads what becomes of a task.
func ParseOnExhausted(name string) (OnExhausted, bool) {
	i := slices.Index(exhaustedNames, name)
	return OnExhausted(i), i >= 0
}

// Budget is what a tenant, or a part of what it does, may spend in a period. There is one of each scope, name and period.
type Budget struct {
	ID          ID
	Tenant      int32
	Scope       BudgetScope
	Env         int32  // of EnvironmentScope, else 0
	Name        string // of a type or a model, else empty
	Period      BudgetPeriod
	Timezone    string // in which days and months begin
	LimitMicro  *int64 // nil: no limit, like the next
	LimitTokens *int64
	OnExhausted OnExhausted
	AlertAt     []float64 // fractions of a limit, ascending
	AlertedFor  Instant   // the period of the last alert, by its beginning
	Alerted     float64   // its largest threshold that was told
	CreatedAt   Instant
	UpdatedAt   Instant
	Version     int64
}

// Same says that two budgets are of the same scope, name and period.
func (b *Budget) Same(o *Budget) bool {
	return b.Tenant == o.Tenant && b.Scope == o.Scope && b.Env == o.Env && b.Name == o.Name && b.Period == o.Period
}

// BudgetSpend is what a batch adds to what was spent of a budget in a period: a row a batch, so that none is written again
// and again. It may be less than nothing: what was presumed of a lost attempt is corrected.
type BudgetSpend struct {
	Budget ID
	Tenant int32
	Since  Instant // when the period begins
	Amount
}

// Presumed is what an attempt that was lost is taken to have spent of a budget or a workflow, until it reports that itself.
type Presumed struct {
	Env   int32
	Task  ID
	Token ID
	Of    ID      // the budget or workflow
	Since Instant // the period of the budget in which it was booked
	Amount
}

// MoneyPlan is what a batch changes of budgets.
type MoneyPlan struct {
	Gone         []ID     // budgets that are deleted with what was spent of them, before Budgets are written
	Budgets      []Budget // whole rows: insert, or replace by ID
	Spends       []BudgetSpend
	Presumed     []Presumed
	PresumedGone []TokenRef // all of an attempt
}

// Empty says that nothing changes.
func (p *MoneyPlan) Empty() bool {
	return len(p.Gone)+len(p.Budgets)+len(p.Spends)+len(p.Presumed)+len(p.PresumedGone) == 0
}

// BudgetState is a budget with what was spent of it in its latest periods, as a board is rebuilt from it.
type BudgetState struct {
	Budget
	Spent []BudgetSpend // one a period, by its beginning
}

const budgetGate = "budget:"

// BudgetGate is where tasks wait that a budget, or the limits of a workflow, do not cover. All tasks behind one gate that
// are of one class ask for the same.
type BudgetGate struct {
	ID       ID
	Workflow bool  // it is a workflow's
	Micro    int64 // what each is expected to cost, as its row says; 0: nothing is said, like the next
	Tokens   int64
}

// Text is the gate's name in a row.
func (g BudgetGate) Text() string {
	prefix := BudgetPrefix
	if g.Workflow {
		prefix = WorkflowPrefix
	}
	text := budgetGate + g.ID.Text(prefix)
	if g.Micro == 0 && g.Tokens == 0 {
		return text
	}
	return text + ":" + strconv.FormatInt(g.Micro, 10) + ":" + strconv.FormatInt(g.Tokens, 10)
}

// IsBudgetGate says that a gate's name is one of a budget.
func IsBudgetGate(gate string) bool { return strings.HasPrefix(gate, budgetGate) }

// ParseBudgetGate reads what Text wrote.
func ParseBudgetGate(gate string) (g BudgetGate, ok bool) {
	rest, ok := strings.CutPrefix(gate, budgetGate)
	if !ok {
		return g, false
	}
	name, asks, asked := strings.Cut(rest, ":")
	var err error
	if g.ID, err = ParseID(BudgetPrefix, name); err != nil {
		if g.ID, err = ParseID(WorkflowPrefix, name); err != nil {
			return g, false
		}
		g.Workflow = true
	}
	if !asked {
		return g, true
	}
	micro, tokens, _ := strings.Cut(asks, ":")
	if g.Micro, err = strconv.ParseInt(micro, 10, 64); err != nil {
		return g, false
	}
	g.Tokens, err = strconv.ParseInt(tokens, 10, 64)
	return g, err == nil
}
