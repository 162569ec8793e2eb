package memory

import (
	"slices"

	"nightshift/models"
)

// moneyRows are budgets and what is spent of them.
type moneyRows struct {
	budgets  map[models.ID]models.Budget
	spent    map[models.ID][]models.BudgetSpend    // one a period, by its beginning
	presumed map[models.TokenRef][]models.Presumed // by what they are of
}

func newMoneyRows() moneyRows {
	return moneyRows{budgets: map[models.ID]models.Budget{}, spent: map[models.ID][]models.BudgetSpend{}, presumed: map[models.TokenRef][]models.Presumed{}}
}

// money writes budgets and what is spent of them.
func (s *Store) money(p *models.Plan) {
	for _, id := range p.Money.Gone {
		delete(s.budgets, id)
		delete(s.spent, id)
	}
	for _, b := range p.Money.Budgets {
		b.AlertAt = slices.Clone(b.AlertAt)
		s.budgets[b.ID] = b
	}
	for _, spend := range p.Money.Spends {
		sums := s.spent[spend.Budget]
		i, found := slices.BinarySearchFunc(sums, spend.Since, func(have models.BudgetSpend, want models.Instant) int { return int(have.Since - want) })
		if !found {
			s.spent[spend.Budget] = slices.Insert(sums, i, spend)
			continue
		}
		sums[i].Amount = sums[i].Plus(spend.Amount)
	}
	for _, l := range p.Money.Presumed {
		ref := models.TokenRef{Env: l.Env, Task: l.Task, Token: l.Token}
		s.presumed[ref] = append(s.presumed[ref], l)
		slices.SortFunc(s.presumed[ref], func(a, b models.Presumed) int { return a.Of.Compare(b.Of) })
	}
	for _, ref := range p.Money.PresumedGone {
		delete(s.presumed, ref)
	}
}

// latestSpends is how far the last periods of a budget lie apart, in microseconds, that a board may need.
const latestSpends = 3 * 24 * 3600 * 1_000_000

func (s *Store) budgetStates() (out []models.BudgetState) {
	for _, b := range sorted(s.budgets, models.ID.Compare) {
		state := models.BudgetState{Budget: b}
		sums := s.spent[b.ID]
		for _, sum := range sums {
			if sum.Since >= sums[len(sums)-1].Since-latestSpends {
				state.Spent = append(state.Spent, sum)
			}
		}
		out = append(out, state)
	}
	return out
}

// SpentOf is what was spent of a budget in each period, by its beginning.
func (s *Store) SpentOf(budget models.ID) []models.BudgetSpend {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.spent[budget])
}

// tokenFacts are attempts that ended, and what was presumed of them.
func (s *Store) tokenFacts(need *models.Need, f *models.Facts) {
	f.Presumed = map[models.TokenRef][]models.Presumed{}
	known(need.Tokens, s.presumed, f.Presumed)
	for _, ref := range need.Tokens {
		if a := s.ended(ref); a != nil {
			f.Tokens[ref] = *a
		}
	}
}
