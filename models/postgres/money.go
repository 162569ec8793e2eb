package postgres

import (
	"encoding/binary"
	"math"

	"nightshift/models"
)

// money sends budgets and what is spent of them.
func money(pipe *pipeline, p *models.Plan) error {
	m := &p.Money
	if len(m.Gone) > 0 {
		pipe.send(call{name: "delete_budgets", params: [][]byte{idArray(m.Gone, same)}})
	}
	if len(m.Budgets) > 0 {
		if err := sendJSON(pipe, "save_budgets", m.Budgets); err != nil {
			return err
		}
	}
	if len(m.Spends) > 0 {
		if err := sendJSON(pipe, "insert_budget_spends", m.Spends, int8Param(p.Batch)); err != nil {
			return err
		}
	}
	if len(m.Presumed) > 0 {
		if err := sendJSON(pipe, "insert_presumed", m.Presumed); err != nil {
			return err
		}
	}
	if len(m.PresumedGone) > 0 {
		pipe.send(call{name: "delete_presumed", params: tokenParams(m.PresumedGone)})
	}
	return nil
}

func tokenParams(refs []models.TokenRef) [][]byte {
	return [][]byte{
		int4Array(refs, func(r models.TokenRef) int32 { return r.Env }), idArray(refs, func(r models.TokenRef) models.ID { return r.Task }),
		idArray(refs, func(r models.TokenRef) models.ID { return r.Token }),
	}
}

// presumedOf reads what lost attempts are taken to have spent.
func presumedOf(refs []models.TokenRef, f *models.Facts) []call {
	if len(refs) == 0 {
		return nil
	}
	return []call{{name: "fact_presumed", params: tokenParams(refs), read: func(c *columns) {
		p := models.Presumed{Env: c.int4(), Task: c.id(), Token: c.id(), Of: c.id(), Since: c.instant(), Amount: models.Amount{Micro: c.int8(), Tokens: c.int8()}}
		ref := models.TokenRef{Env: p.Env, Task: p.Task, Token: p.Token}
		f.Presumed[ref] = append(f.Presumed[ref], p)
	}}}
}

// loadMoney reads the budgets, and then what was spent of each, in the same order.
func loadMoney(out *models.Snapshot) []call {
	next := 0
	return []call{
		{name: "load_budgets", read: func(c *columns) { out.Budgets = append(out.Budgets, models.BudgetState{Budget: c.budget()}) }},
		{name: "load_budget_spends", read: func(c *columns) {
			s := models.BudgetSpend{Budget: c.id(), Tenant: c.int4(), Since: c.instant(), Amount: models.Amount{Micro: c.int8(), Tokens: c.int8()}}
			for out.Budgets[next].ID != s.Budget {
				next++
			}
			out.Budgets[next].Spent = append(out.Budgets[next].Spent, s)
		}},
	}
}

func (c *columns) budget() models.Budget {
	b := models.Budget{
		ID: c.id(), Tenant: c.int4(), Scope: models.BudgetScope(c.int2()), Env: c.int4(), Name: c.text(), Period: models.BudgetPeriod(c.int2()),
		Timezone: c.text(), LimitMicro: c.maybe8(), LimitTokens: c.maybe8(), OnExhausted: models.OnExhausted(c.int2()),
	}
	elements(c.raw(), func(e []byte) { b.AlertAt = append(b.AlertAt, math.Float64frombits(binary.BigEndian.Uint64(e))) })
	b.AlertedFor, b.Alerted = c.instant(), c.float8()
	b.CreatedAt, b.UpdatedAt, b.Version = c.instant(), c.instant(), c.int8()
	return b
}
