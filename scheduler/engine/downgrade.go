package engine

import (
	"fmt"
	"slices"

	"nightshift/models"
	"nightshift/scheduler/board"
	"nightshift/scheduler/budget"
	"nightshift/scheduler/route"
)

// lowerEvery is how often what waits for a budget that downgrades is looked at once more, in microseconds: prices, qualities and
// other budgets change.
const lowerEvery = 30_000_000

// shortsOn are the accounts that would not cover a task were it of a class.
func (e *Engine) shortsOn(row *models.Task, class *models.Class) (out []*board.Account) {
	of := e.board.BudgetsOf(row.Env, class.Type, class.Model)
	if row.Has(models.SpendsFlow) {
		for _, a := range e.board.Accounts(row) {
			if a.Workflow {
				of = append(slices.Clip(of), a)
			}
		}
	}
	if len(of) == 0 {
		return nil
	}
	ask := e.expects(e.board.TenantOf(row.Env), class, e.board.ClassNumber(*class)).Of(budget.Said(row.CostMicro, row.Tokens))
	for _, a := range of {
		if a.Lacks(ask) {
			out = append(out, a)
		}
	}
	return out
}

// lowering is the budget for which a task of a class is to get another model: it does not cover the task, and whatever else does not
// wants the same of what it does not cover. nil: it keeps its model, and waits where it is not covered.
func (e *Engine) lowering(row *models.Task, class *models.Class) *board.Account {
	if !class.Chosen || class.Model == "" || !e.board.Downgrades(e.board.TenantOf(row.Env)) {
		return nil
	}
	shorts := e.shortsOn(row, class)
	if len(shorts) == 0 || slices.ContainsFunc(shorts, func(a *board.Account) bool {
		return a.Workflow || a.Budget.OnExhausted != models.DowngradeTask
	}) {
		return nil
	}
	return shorts[0]
}

// lower chooses for a task whose model a budget does not cover the cheapest one that it may have and that everything it counts in
// covers; false where there is none.
func (e *Engine) lower(row *models.Task, class *models.Class, of optionsFor, ask *route.Ask) (chosen, bool) {
	short := e.lowering(row, class)
	if short == nil {
		return chosen{}, false
	}
	ranking := route.Rank(ask, e.options(of))
	for i := range ranking[:min(len(ranking), mostRanked)] {
		r := &ranking[i]
		if !r.Takes() {
			break
		}
		m := e.board.ModelNamed(of.tenant, r.Name)
		next := *class
		if next.Model, next.Hosted = r.Name, !m.Local(); r.Name == class.Model || len(e.shortsOn(row, &next)) > 0 {
			continue
		}
		reason := fmt.Sprintf("%s does not cover %s: it is the cheapest that is covered", e.nameOf(short), class.Model)
		got := e.outcome(of, ask, ranking, r.Name, reason)
		got.ranking[0].Instead = class.Model
		return got, true
	}
	return chosen{}, false
}

// downgrade gives a task another model that waits for a budget which wants that, where one is covered. Else it waits on.
func (e *Engine) downgrade(row *models.Task) {
	class := e.board.Classes[row.Class]
	last, known := e.b.facts.Choices[models.TaskRef{Env: row.Env, ID: row.ID}]
	if class == nil || !known || last.Asked == nil || last.Named != "" {
		return
	}
	of := optionsFor{e.board.TenantOf(row.Env), class.Type, e.kindOf(row) == models.Batch}
	ask := &route.Ask{ModelAsk: *last.Asked, Type: of.typ, Tokens: row.Tokens, Failed: last.Failed}
	got, ok := e.lower(row, class, of, ask)
	next := *class
	if next.Model, next.Hosted = got.name, got.hosted; !ok || !e.mayIntern(row.Env, &next) {
		return
	}
	e.board.Lower(row) // those behind it may go the same way
	c := e.enlist(row)
	e.stepOut(c)
	c.row.UpdatedAt = e.now
	e.keepChoice(&c.row, &models.Choice{N: last.N + 1, At: e.now, Asked: last.Asked, Chosen: got.name, Reason: got.reason, Failed: last.Failed, Ranking: kept(got.ranking)})
	c.row.Class = e.internClass(next)
	e.event(c, "task.downgraded").Reason = got.reason
	e.place(c)
}

// downgraded tells of a new task whose first choice a budget did not cover.
func (e *Engine) downgraded(c *change, choice *models.Choice) {
	if choice != nil && len(choice.Ranking) > 0 && choice.Ranking[0].Instead != "" {
		e.event(c, "task.downgraded").Reason = choice.Reason
	}
}

// parkedDear notes a task that was parked for a budget and may get another model; the next batch looks.
func (e *Engine) parkedDear(row *models.Task) {
	if row.Has(models.ChoosesModel) && models.IsBudgetGate(row.Gate) && e.board.Downgrades(e.board.TenantOf(row.Env)) {
		e.b.dear = append(e.b.dear, row.ID)
	}
}

// keepDear takes those along into the next batch that the last one left parked.
func (e *Engine) keepDear() {
	for _, id := range e.b.dear {
		if c := e.b.rows[id]; c != nil && !c.fresh && c.row.State == models.Ready && models.IsBudgetGate(c.row.Gate) && len(e.modelless) < e.cfg.Slice {
			e.modelless = append(e.modelless, c.row) // of the rest the next look knows
		}
	}
}

// lookLower has what waits for budgets that downgrade looked at now and then.
func (e *Engine) lookLower() {
	if e.now-e.lowered >= lowerEvery {
		e.lowered = e.now
		e.board.LookLower()
	}
}
