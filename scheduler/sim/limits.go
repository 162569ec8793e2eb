package sim

import (
	"fmt"

	"nightshift/models"
	"nightshift/scheduler/engine"
)

// holds is what a tenant has live, and what is left of its tokens, counted beside the engine.
type holds struct {
	live, cards, vramMB int64
	tokens              float64
	at                  models.Instant
}

type typeOf struct {
	env  int32
	name string
}

// limit sets a tenant's quotas and what its environment says of task types.
func (w *World) limit(t *tenant) {
	if t.Quotas != (models.Quotas{}) {
		q := t.Quotas
		q.Tenant = t.number
		w.configured(&engine.Configure{Quotas: &engine.SetQuotas{Quotas: q}, Version: -1, Action: "quotas.edit"})
		if q.TokensPerMinute != nil {
			t.holds.tokens, t.holds.at = float64(*q.TokensPerMinute), w.now
		}
	}
	for _, row := range t.Budgets {
		row.ID, row.Tenant = w.id(), t.number
		w.configured(&engine.Configure{Budget: &engine.SetBudget{Budget: row, Env: t.env}, New: true, Action: "budget.put"})
	}
	for _, row := range t.Rates {
		row.Env = t.env
		w.watch.rates[holder{t.env, row.Key}] = &rateWatch{limit: row}
		w.configured(&engine.Configure{Rate: &row, Action: "rate_limit.put"})
	}
	for _, row := range t.Types {
		row.Env = t.env
		w.watch.types[typeOf{t.env, row.Type}] = row
		w.configured(&engine.Configure{TaskType: &row, Version: -1, Action: "task_type.edit"})
	}
}

// quotas counts what a tenant holds, and looks whether what starts was allowed.
func (w *World) quotas(row *models.Task, n int64) {
	t := w.jobs[row.ID].tenant
	class := w.watch.classes[row.Class]
	q, h := &t.Quotas, &t.holds
	h.live += n
	h.cards += n * int64(class.GPU)
	h.vramMB += n * int64(class.GPU) * class.VRAMMB
	of := typeOf{row.Env, class.Type}
	w.watch.inType[of] += n
	if n < 0 {
		return
	}
	over := func(what string, is int64, most *int64) {
		w.most(fmt.Sprintf("most_%s_%s", what, t.Name), is)
		if most != nil && is > *most {
			w.violate("%s holds %d %s, its quota is %d", t.Name, is, what, *most)
		}
	}
	over("live", h.live, q.MaxConcurrent)
	if class.GPU > 0 {
		over("cards", h.cards, q.MaxGPUs)
		over("vram", h.vramMB, q.MaxVRAMMB)
	}
	over("live_"+class.Type, w.watch.inType[of], w.watch.types[of].MaxConcurrent)
	if w.watch.types[of].Paused {
		w.violate("a task of the paused type %s started", class.Type)
	}
	w.eat(t, row.Tokens)
}

// eat takes tokens as they are told at a start: there must be one left, and then the bucket may owe.
func (w *World) eat(t *tenant, tokens int64) {
	if t.Quotas.TokensPerMinute == nil || tokens == 0 {
		return
	}
	most, h := float64(*t.Quotas.TokensPerMinute), &t.holds
	h.tokens = min(most, h.tokens+w.now.Sub(h.at).Minutes()*most)
	h.at = w.now
	if h.tokens < 1-1e-6 {
		w.violate("%s started a task of %d tokens with %.3f left", t.Name, tokens, h.tokens)
	}
	h.tokens -= float64(tokens)
	w.result.Counters["tokens_"+t.Name] += tokens
}

func (w *World) most(name string, n int64) {
	w.result.Counters[name] = max(w.result.Counters[name], n)
}

// pays counts what an attempt costs from its start on: whether anybody hears of it, its worker has spent it.
func (w *World) pays(j *job) {
	if j.source.CostMicro > 0 {
		w.result.Counters["spent_"+j.tenant.Name] += j.source.CostMicro
		w.result.Counters["paid_"+j.tenant.Name]++
	}
}

// bill is what an attempt reports of its cost.
func (j *job) bill() []byte {
	if j.source.CostMicro == 0 {
		return nil
	}
	return fmt.Appendf(nil, `{"cost_usd":%g}`, float64(j.source.CostMicro)/1e6)
}
