package engine

import (
	"encoding/json"
	"slices"
	"strconv"

	"nightshift/models"
	"nightshift/scheduler/board"
	"nightshift/scheduler/budget"
	"nightshift/scheduler/route"
)

// learned is what tasks of a class are expected to spend that say nothing of it: what a share of their like stayed within, and
// what their model costs, as far as no cost was reported of them. What a task will cost is asked nowhere else.
func (e *Engine) learned(tenant, class int32) (x budget.Expected) {
	x.Micro, x.KnowsMicro = e.book.Cost(tenant, class, startQuantile)
	x.Tokens, x.KnowsTokens = e.book.Tokens(tenant, class, startQuantile)
	if c := e.board.Classes[class]; c != nil && x.Micro == 0 {
		x.PerMillion = e.listPrice(tenant, c.Model)
		x.KnowsMicro = x.KnowsMicro && x.PerMillion == 0 // those that ran said nothing of what they cost
	}
	return x
}

// expects is the same of a class that may have no number yet: 0.
func (e *Engine) expects(tenant int32, class *models.Class, number int32) budget.Expected {
	if number != 0 {
		return e.learned(tenant, number)
	}
	return budget.Expected{PerMillion: e.listPrice(tenant, class.Model)}
}

// listPrice is what a million tokens of a model cost, shared out between question and answer as they are where nobody has seen any,
// at any hour; 0: nobody said. A model without a price may cost what its worker says.
func (e *Engine) listPrice(tenant int32, model string) int64 {
	m := e.board.ModelNamed(tenant, model)
	if m == nil {
		return 0
	}
	return route.Price(&m.Model, route.Expect(1_000_000, models.ModelSeen{}), 1)
}

// usedModel is the model that an attempt really used: the one that its report names, as far as anything is known of it, else the one
// it was given. Providers name models by words of their own; those say nothing.
func (e *Engine) usedModel(tenant int32, given string, usage json.RawMessage) string {
	var said struct {
		Model string `json:"model"`
	}
	if len(usage) == 0 || json.Unmarshal(usage, &said) != nil || said.Model == "" || said.Model == given {
		return given
	}
	if e.board.ModelNamed(tenant, said.Model) != nil {
		return said.Model
	}
	for _, a := range e.board.TenantBudgets(tenant) {
		if a.Budget.Scope == models.ModelScope && a.Budget.Name == said.Model {
			return said.Model
		}
	}
	return given
}

// costed is the usage of an attempt with what it cost. A report that names tokens and no cost is taken at the price of the model
// that the attempt used, at the hour of the report; a report's own word holds, and so does that it was for nothing.
func (e *Engine) costed(row *models.Task, model string, usage json.RawMessage) json.RawMessage {
	m := e.board.ModelNamed(e.board.TenantOf(row.Env), model)
	if m == nil || len(usage) == 0 {
		return usage
	}
	var said reported
	if json.Unmarshal(usage, &said) != nil || said.CostUSD != nil {
		return usage
	}
	use := route.Use{In: float64(said.In), Out: float64(said.Out), Cached: float64(min(said.Cached, said.In))}
	lane := e.laneOf(row) // of a late report it may be gone: nil
	micro := route.Price(&m.Model, use, route.Factor(&m.Model, m.OffPeak(e.now), lane != nil && lane.Kind == models.Batch))
	members := map[string]json.RawMessage{}
	if micro == 0 || json.Unmarshal(usage, &members) != nil {
		return usage
	}
	members["cost_usd"] = json.RawMessage(strconv.FormatFloat(float64(micro)/1e6, 'f', -1, 64))
	text, err := json.Marshal(members)
	if err != nil {
		return usage
	}
	return text
}

// payers are the budgets in which what an attempt of a task used on a model counts.
func (e *Engine) payers(row *models.Task, model string) []*board.Account {
	class := e.board.Classes[row.Class]
	if class == nil {
		return nil
	}
	return e.board.BudgetsOf(row.Env, class.Type, model)
}

// pay books what an attempt that ends has spent, as it reported; where nobody reported, what was expected of it is taken to
// be spent until it reports after all.
func (e *Engine) pay(lease *board.Lease, attempt *models.Attempt, silent bool) {
	row := lease.Row()
	used := models.SpendOf(attempt.Usage)
	e.spend(row, used)
	if silent && (attempt.Outcome == models.AttemptLost || attempt.Outcome == models.AttemptTimedOut) {
		e.presume(row)
		return
	}
	if amount := amountOf(used); amount != (models.Amount{}) {
		for _, a := range e.payers(row, attempt.Model) {
			e.charge(a, row.Env, row.StartedAt, amount)
		}
	}
}

func amountOf(s models.Spend) models.Amount {
	return models.Amount{Micro: s.CostMicro, Tokens: s.Tokens}
}

// presume books what was expected of an attempt that was lost.
func (e *Engine) presume(row *models.Task) {
	ask := e.board.AskOf(row)
	for _, a := range e.board.Accounts(row) {
		amount := a.Purse.Weighs(ask)
		if amount == (models.Amount{}) {
			continue
		}
		p := models.Presumed{Env: row.Env, Task: row.ID, Token: row.Token, Of: a.ID, Amount: amount}
		if a.Workflow {
			e.spend(row, models.Spend{CostMicro: amount.Micro, Tokens: amount.Tokens})
		} else {
			p.Since = e.charge(a, row.Env, row.StartedAt, amount)
		}
		e.b.plan.Money.Presumed = append(e.b.plan.Money.Presumed, p)
	}
}

// charge books in a budget, in the period in which the attempt started.
func (e *Engine) charge(a *board.Account, env int32, started models.Instant, amount models.Amount) (since models.Instant) {
	since, counts := e.board.Spent(a, started, amount)
	e.spent(a, since, amount)
	if counts {
		e.alert(a, env)
	}
	return since
}

// spent writes what this batch adds to what was spent of a budget.
func (e *Engine) spent(a *board.Account, since models.Instant, amount models.Amount) {
	spends := e.b.plan.Money.Spends
	if i := slices.IndexFunc(spends, func(s models.BudgetSpend) bool { return s.Budget == a.ID && s.Since == since }); i >= 0 {
		spends[i].Amount = spends[i].Plus(amount)
		return
	}
	e.b.plan.Money.Spends = append(spends, models.BudgetSpend{Budget: a.ID, Tenant: a.Budget.Tenant, Since: since, Amount: amount})
}

// spendLate books what an attempt reported after its lease was lost, in place of what was presumed. It answers the usage with
// what it cost.
func (e *Engine) spendLate(r *Result, attempt *models.Attempt) (usage json.RawMessage) {
	row := e.peek(r.Task)
	if row == nil {
		return r.Usage
	}
	model := e.usedModel(e.board.TenantOf(row.Env), attempt.Model, r.Usage)
	usage = e.costed(row, model, r.Usage)
	used := models.SpendOf(usage)
	e.useTokens(e.board.TenantOf(row.Env), row, usage)
	presumed := e.unpresume(models.TokenRef{Env: r.Task.Env, Task: r.Task.ID, Token: r.Token})
	took := func(of models.ID) (models.Presumed, bool) {
		i := slices.IndexFunc(presumed, func(p models.Presumed) bool { return p.Of == of })
		if i < 0 {
			return models.Presumed{}, false
		}
		return presumed[i], true
	}
	flow, _ := took(row.Workflow)
	used.CostMicro, used.Tokens = used.CostMicro-flow.Micro, used.Tokens-flow.Tokens
	e.spend(row, used)
	actual := amountOf(models.SpendOf(usage))
	payers := e.payers(row, model)
	for _, p := range presumed { // the zone of the budget may have changed since: what was presumed went over with the rest
		if a := e.board.BudgetByID(p.Of); a != nil && !slices.Contains(payers, a) {
			e.charge(a, row.Env, attempt.StartedAt, models.Amount{}.Minus(p.Amount))
		}
	}
	for _, a := range payers {
		p, was := took(a.ID)
		if amount := actual.Minus(p.Amount); amount != (models.Amount{}) && (was || a.Budget.CreatedAt <= attempt.FinishedAt) {
			e.charge(a, row.Env, attempt.StartedAt, amount)
		}
	}
	return usage
}

// unpresume takes back what was presumed of an attempt, in this batch or before.
func (e *Engine) unpresume(ref models.TokenRef) []models.Presumed {
	of := func(p models.Presumed) bool { return p.Env == ref.Env && p.Task == ref.Task && p.Token == ref.Token }
	m := &e.b.plan.Money
	var now []models.Presumed
	for _, p := range m.Presumed {
		if of(p) {
			now = append(now, p)
		}
	}
	m.Presumed = slices.DeleteFunc(m.Presumed, of)
	if before := e.b.facts.Presumed[ref]; len(before) > 0 && !slices.Contains(m.PresumedGone, ref) {
		m.PresumedGone = append(m.PresumedGone, ref)
		now = append(now, before...)
	}
	return now
}

// alert tells which thresholds of a budget have been reached, each once a period.
func (e *Engine) alert(a *board.Account, env int32) {
	g := &a.Budget
	told := g.Alerted
	if g.AlertedFor != a.Since {
		told = 0
	}
	most := a.Purse.Reached(g.AlertAt)
	if most <= told {
		return
	}
	for _, t := range g.AlertAt {
		if t > told && t <= most {
			e.b.plan.Events = append(e.b.plan.Events, models.Event{
				Env: env, Name: "budget.alert", At: e.now, Budget: g.ID, Threshold: t, Reason: e.reached(a, t),
			})
		}
	}
	g.Alerted, g.AlertedFor = most, a.Since
	e.saveBudget(g)
}

func (e *Engine) saveBudget(g *models.Budget) {
	replace(&e.b.plan.Money.Budgets, *g, func(o models.Budget) bool { return o.ID == g.ID })
}

// decideReturn lets a task back that was parked for a budget, or a workflow's, which covers it now. Something else may hold
// it then.
func (e *Engine) decideReturn(row *models.Task) {
	if !e.board.MayReturn(row) {
		return
	}
	gate, _ := models.ParseBudgetGate(row.Gate)
	c := e.enlist(row)
	e.unpark(c)
	e.stand(c)
	if c.row.Gate == "" {
		e.board.Return(&c.row, gate.ID)
	}
	e.sync(c)
}

// retryTotal is when a caller may come again whom a budget refuses that never begins anew, in seconds.
const retryTotal = 3600

// mayAfford says why a new task is refused for what it is expected to spend.
func (e *Engine) mayAfford(env int32, class *models.Class, number int32, said budget.Ask, at string) error {
	if len(e.board.TenantBudgets(e.board.TenantOf(env))) == 0 {
		return nil
	}
	ask := e.expects(e.board.TenantOf(env), class, number).Of(said)
	for _, a := range e.board.BudgetsOf(env, class.Type, class.Model) {
		if a.Budget.OnExhausted != models.RejectTask || !a.Purse.Exhausted(ask) {
			continue
		}
		err := models.Errorf(models.BudgetExhausted, "%s: %s", at, e.lacks(a, ask))
		err.RetryAfterSeconds = retryTotal
		if a.Until < models.Forever {
			err.RetryAfterSeconds = max(1, int((a.Until-e.now+999_999)/1_000_000))
		}
		return err
	}
	return nil
}

// wantSpenders asks for the workflows that tasks wait for behind gates of money, and for those that an earlier version shut.
func (e *Engine) wantSpenders(s *models.Snapshot) {
	for _, p := range s.Parked {
		if g, ok := models.ParseBudgetGate(p.Gate); ok && g.Workflow {
			e.want[models.TaskRef{Env: p.Line.Env, ID: g.ID}] = true
		}
	}
	for _, f := range s.HeldFlows {
		if f.Gate&models.FlowSpent != 0 {
			e.want[models.TaskRef{Env: f.Env, ID: f.Workflow}] = true
		}
	}
}
