package engine

import (
	"fmt"
	"strconv"

	"nightshift/models"
	"nightshift/scheduler/board"
	"nightshift/scheduler/budget"
)

// MostBudgets is how many a tenant has.
const MostBudgets = 500

// SetBudget makes a budget, or replaces the one of its scope, name and period.
type SetBudget struct {
	Budget models.Budget `json:"budget"`
	Env    int32         `json:"env"` // where an alert is told that this raises
}

// BudgetRef names a budget of a tenant, or, without ID, all of them.
type BudgetRef struct {
	Tenant int32     `json:"tenant"`
	ID     models.ID `json:"id,omitzero"`
}

// BudgetFigures are a budget with what is spent and reserved of it.
type BudgetFigures struct {
	Budget   models.Budget  `json:"budget"`
	Spent    models.Amount  `json:"spent"`
	Reserved models.Amount  `json:"reserved"`
	Until    models.Instant `json:"until"`   // when it begins anew; Forever: never
	Waiting  int64          `json:"waiting"` // tasks that it holds

	Environment string `json:"environment,omitempty"` // of the scope of one
	Made        bool   `json:"made,omitempty"`
}

func (e *Engine) figuresOf(a *board.Account) *BudgetFigures {
	out := &BudgetFigures{Budget: a.Budget, Spent: a.Purse.Spent, Reserved: a.Purse.Held(), Until: a.Until, Waiting: a.WaitingFor()}
	return e.withPlace(out)
}

func (e *Engine) withPlace(f *BudgetFigures) *BudgetFigures {
	if env := e.board.Envs[f.Budget.Env]; env != nil {
		f.Environment = env.Name
	}
	return f
}

// budgetFigures answers one budget, or all of a tenant.
func (e *Engine) budgetFigures(ref *BudgetRef) ([]BudgetFigures, error) {
	if !ref.ID.IsZero() {
		a := e.board.BudgetByID(ref.ID)
		if a == nil || a.Budget.Tenant != ref.Tenant {
			return nil, noBudget(ref.ID)
		}
		return []BudgetFigures{*e.figuresOf(a)}, nil
	}
	out := []BudgetFigures{}
	for _, a := range e.board.TenantBudgets(ref.Tenant) {
		out = append(out, *e.figuresOf(a))
	}
	return out, nil
}

func noBudget(id models.ID) error {
	return models.Errorf(models.NotFound, "there is no budget %s", id.Text(models.BudgetPrefix))
}

// putBudget makes a budget or replaces one. What was spent in its period stays spent, whatever zone its days begin in.
func (e *Engine) putBudget(cmd *Command) (*Answer, error) {
	c := cmd.Configure
	row := c.Budget.Budget
	old, err := e.standing(c, &row)
	if err != nil {
		return nil, err
	}
	answer := &Answer{Made: []models.ID{row.ID}}
	if c.New && old != nil && old.ID == row.ID && cmd.Resent { // the same call, sent again
		answer.Budget = e.figuresOf(old)
		answer.Budget.Made = old.Budget.Version == 1
		return answer, nil
	}
	if c.Dry {
		answer.Budget = e.dryBudget(old, &row)
		return answer, nil
	}
	row.CreatedAt, row.UpdatedAt, row.Version = e.now, e.now, 1
	var before any
	if old != nil {
		before = budgetWords(&old.Budget)
		row.ID, row.CreatedAt, row.Version = old.ID, old.Budget.CreatedAt, old.Budget.Version+1
		row.Alerted, row.AlertedFor = old.Budget.Alerted, old.Budget.AlertedFor
	}
	a, moved, from := e.board.PutBudget(row, e.now)
	e.board.LookLower()
	if old != nil && a.Since != from {
		if moved != (models.Amount{}) {
			e.spent(a, from, models.Amount{}.Minus(moved))
			e.spent(a, a.Since, moved)
		}
		if a.Budget.AlertedFor == from {
			a.Budget.AlertedFor = a.Since
		}
	}
	if a.Budget.AlertedFor == a.Since { // what a raised limit takes back may be told again
		a.Budget.Alerted = min(a.Budget.Alerted, a.Purse.Reached(row.AlertAt))
	}
	e.saveBudget(&a.Budget)
	e.alert(a, c.Budget.Env)
	answer.Made[0] = row.ID
	answer.Budget = e.figuresOf(a)
	answer.Budget.Made = old == nil
	if c.New {
		e.recordOnce(c.Once, answer.Made)
	}
	e.auditChange(cmd, row.Env, row.ID.Text(models.BudgetPrefix), before, budgetWords(&row))
	return answer, nil
}

// standing finds the budget that is replaced, nil when a new one is made.
func (e *Engine) standing(c *Configure, row *models.Budget) (*board.Account, error) {
	if e.board.Tenants[row.Tenant] == nil {
		return nil, models.Errorf(models.NotFound, "there is no such tenant")
	}
	of := e.board.TenantBudgets(row.Tenant)
	if !c.New {
		a := e.board.BudgetByID(row.ID)
		if a == nil || a.Budget.Tenant != row.Tenant {
			return nil, noBudget(row.ID)
		}
		return a, fresh(c.Version, a.Budget.Version)
	}
	for _, a := range of {
		if a.Budget.Same(row) {
			return a, nil
		}
	}
	if len(of) >= MostBudgets {
		return nil, models.Errorf(models.StateConflict, "a tenant has at most %d budgets", MostBudgets)
	}
	return nil, nil
}

// dryBudget is what a budget would look like.
func (e *Engine) dryBudget(old *board.Account, row *models.Budget) *BudgetFigures {
	if old != nil {
		out := e.figuresOf(old)
		id, made := old.ID, old.Budget.CreatedAt
		out.Budget = *row
		out.Budget.ID, out.Budget.CreatedAt, out.Budget.UpdatedAt, out.Budget.Version = id, made, e.now, old.Budget.Version+1
		_, out.Until = (&board.Account{Budget: *row}).SpanAt(e.now)
		return out
	}
	out := &BudgetFigures{Budget: *row, Made: true}
	out.Budget.Version = 1
	_, out.Until = (&board.Account{Budget: *row}).SpanAt(e.now)
	return e.withPlace(out)
}

// deleteBudget lifts a budget: what waits for it comes back.
func (e *Engine) deleteBudget(cmd *Command) (*Answer, error) {
	c := cmd.Configure
	ref := *c.DeleteBudget
	a := e.board.BudgetByID(ref.ID)
	if a == nil || a.Budget.Tenant != ref.Tenant {
		return nil, noBudget(ref.ID)
	}
	if err := fresh(c.Version, a.Budget.Version); err != nil {
		return nil, err
	}
	row := a.Budget
	e.board.DropBudget(ref.ID)
	e.dropBudgetPlan(ref.ID)
	e.b.plan.Money.Gone = append(e.b.plan.Money.Gone, ref.ID)
	e.auditChange(cmd, row.Env, ref.ID.Text(models.BudgetPrefix), budgetWords(&row), nil)
	return &Answer{}, nil
}

// dropBudgetPlan takes back what this batch wrote of a budget before.
func (e *Engine) dropBudgetPlan(id models.ID) {
	m := &e.b.plan.Money
	m.Budgets = without(m.Budgets, func(g *models.Budget) bool { return g.ID == id })
	m.Spends = without(m.Spends, func(s *models.BudgetSpend) bool { return s.Budget == id })
}

func without[T any](list []T, drop func(*T) bool) []T {
	kept := list[:0]
	for i := range list {
		if !drop(&list[i]) {
			kept = append(kept, list[i])
		}
	}
	return kept
}

// Dollars is an amount as people read it: cents, and as much more as there is.
func Dollars(micro int64) string {
	sign := ""
	if micro < 0 {
		sign, micro = "-", -micro
	}
	text := strconv.FormatFloat(float64(micro)/1e6, 'f', -1, 64)
	if micro%10_000 == 0 {
		text = strconv.FormatFloat(float64(micro)/1e6, 'f', 2, 64)
	}
	return sign + "$" + text
}

// nameOf names a budget in a sentence.
func (e *Engine) nameOf(a *board.Account) string {
	g := &a.Budget
	of := "of the tenant"
	switch g.Scope {
	case models.EnvironmentScope:
		of = "of the environment"
		if env := e.board.Envs[g.Env]; env != nil {
			of += " " + env.Name
		}
	case models.TypeScope:
		of = "of the type " + g.Name
	case models.ModelScope:
		of = "of the model " + g.Name
	}
	per := map[models.BudgetPeriod]string{models.ByDay: "a day", models.ByMonth: "a month", models.InTotal: "in total"}[g.Period]
	return fmt.Sprintf("the budget %s %s (%s)", of, per, g.ID.Text(models.BudgetPrefix))
}

// lacks says why an account does not cover a task: what is left, what is asked, and when it begins anew.
func (e *Engine) lacks(a *board.Account, ask budget.Ask) string {
	name, begins := "the workflow's budget", ""
	if !a.Workflow {
		name, begins = e.nameOf(a), "; it does not begin anew"
		if a.Until < models.Forever {
			begins = "; it begins anew at " + a.Until.Time().Format(clock)
		}
	}
	p, held := &a.Purse, a.Purse.Held()
	left, asked, few := "", "", ""
	add := func(limit *int64, spent, held, ask int64, known bool, weighs int64, unknown int64, write func(int64) string, verb string) {
		if limit == nil {
			return
		}
		if left != "" {
			left, asked = left+", and ", asked+" and "
		}
		left += fmt.Sprintf("%s of %s left (%s spent, %s reserved)", write(max(0, *limit-spent-held)), write(*limit), write(max(0, spent)), write(held))
		if known {
			asked += verb + " " + write(ask)
			return
		}
		asked += verb + " nobody knows what, which counts " + write(weighs)
		if unknown >= budget.UnknownMost {
			few = fmt.Sprintf("; at most %d such run at once", budget.UnknownMost)
		}
	}
	weighs := p.Weighs(ask)
	add(p.LimitMicro, p.Spent.Micro, held.Micro, ask.Micro, ask.KnowsMicro, weighs.Micro, p.Unknown.Micro, Dollars, "to cost")
	add(p.LimitTokens, p.Spent.Tokens, held.Tokens, ask.Tokens, ask.KnowsTokens, weighs.Tokens, p.Unknown.Tokens,
		func(n int64) string { return strconv.FormatInt(n, 10) + " tokens" }, "to use")
	return fmt.Sprintf("%s has %s; the task is expected %s%s%s", name, left, asked, few, begins)
}

// reached says which part of a budget was spent.
func (e *Engine) reached(a *board.Account, threshold float64) string {
	return fmt.Sprintf("%s: %s %% of it is spent", e.nameOf(a), strconv.FormatFloat(threshold*100, 'f', -1, 64))
}

// staysOn says why a task gets no other model though the budget that does not cover it wants that.
func (e *Engine) staysOn(a *board.Account, row *models.Task) string {
	switch {
	case a.Workflow || a.Budget.OnExhausted != models.DowngradeTask:
		return ""
	case !row.Has(models.ChoosesModel):
		return "; the task leaves no choice among models, so it waits"
	}
	return "; no other model that fits the task is covered, so it waits"
}

// moneyBlocks says which budgets do not let a ready task start now, and which limits of its workflow.
func (e *Engine) moneyBlocks(row *models.Task, block blocker) {
	shorts := e.board.Shorts(row)
	for _, a := range shorts {
		reason := "tenant_budget"
		if a.Workflow {
			reason = "workflow_budget"
		}
		block(reason, "%s%s", e.lacks(a, e.board.AskOf(row)), e.staysOn(a, row))
	}
	if g, ok := models.ParseBudgetGate(row.Gate); ok && len(shorts) == 0 {
		reason := "tenant_budget"
		if g.Workflow {
			reason = "workflow_budget"
		}
		block(reason, "what is left covers it now: it is about to return to its line")
	}
}
