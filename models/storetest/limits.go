package storetest

import (
	"encoding/json"

	"nightshift/models"
	"nightshift/scheduler/engine"
)

// maybe is a limit about as often as none.
func (r *run) maybe(most int64) *int64 {
	if r.chance(40) {
		return nil
	}
	n := 1 + r.rng.Int64N(most)
	return &n
}

// limit changes what tenants may hold and ask for, while work runs.
func (r *run) limit() *engine.Command {
	tenant, env := pick(r, r.known.tenants), pick(r, r.known.envs)
	switch r.rng.IntN(6) {
	case 2, 3:
		return r.budget(tenant.Number, env)
	case 0:
		set := &engine.SetQuotas{Quotas: models.Quotas{
			Tenant: tenant.Number, MaxConcurrent: r.maybe(6), MaxQueued: r.maybe(60), MaxGPUs: r.maybe(2), MaxVRAMMB: r.maybe(20_000),
			TokensPerMinute: r.maybe(3_000), MaxSchedules: r.maybe(6), MinIntervalSeconds: r.maybe(2),
		}}
		if r.chance(20) {
			weight := float64(1 + r.rng.IntN(5))
			set.Weight = &weight
		}
		return r.configure(&engine.Configure{Quotas: set, Action: "quotas.set"})
	case 1:
		grants := &models.Grants{Env: env.Env}
		if r.chance(75) {
			grants.Granted = []string{"net", "mail"}
		}
		return r.configure(&engine.Configure{Grants: grants, Action: "permissions.set"})
	}
	row := &models.TaskType{Env: env.Env, Type: pick(r, []string{"a.one", "a.two", "b.one", "b.two", "c.one"}), MaxConcurrent: r.maybe(3), Paused: r.chance(20)}
	if r.chance(10) {
		row.InputSchema, row.Schema = json.RawMessage(`{"type":"object"}`), models.NewSchema
	}
	return r.configure(&engine.Configure{TaskType: row, Action: "task_type.edit"})
}

// budget makes a budget, changes one or lifts it, while work that counts in it runs.
func (r *run) budget(tenant int32, env models.Environment) *engine.Command {
	row := models.Budget{
		ID: r.id(), Tenant: tenant, Scope: models.BudgetScope(r.rng.IntN(4)), Period: models.BudgetPeriod(r.rng.IntN(3)),
		Timezone: pick(r, []string{"UTC", "Africa/Lusaka", "America/New_York"}), LimitMicro: r.maybe(150_000), LimitTokens: r.maybe(300),
		OnExhausted: pick(r, []models.OnExhausted{models.HoldTask, models.HoldTask, models.RejectTask}), AlertAt: pick(r, [][]float64{nil, {0.5, 1}}),
	}
	if r.chance(15) {
		row.LimitMicro, row.LimitTokens = nil, nil
	}
	switch row.Scope {
	case models.EnvironmentScope:
		row.Tenant, row.Env = env.Tenant, env.Env
	case models.TypeScope:
		row.Name = pick(r, []string{"a.one", "a.two", "b.one"})
	case models.ModelScope:
		row.Name = "small"
	}
	change := &engine.Configure{New: true, Action: "budget.put", Budget: &engine.SetBudget{Budget: row, Env: env.Env}}
	if len(r.known.budgets) == 0 || r.chance(50) {
		return r.configure(change)
	}
	stands := pick(r, r.known.budgets)
	change.New, change.Version = false, pick(r, []int64{-1, -1, stands.Version})
	if r.chance(25) {
		change.Budget, change.DeleteBudget = nil, &engine.BudgetRef{Tenant: stands.Tenant, ID: stands.ID}
		return r.configure(change)
	}
	stands.LimitMicro, stands.LimitTokens, stands.Timezone, stands.AlertAt = row.LimitMicro, row.LimitTokens, row.Timezone, row.AlertAt
	change.Budget.Budget = stands
	return r.configure(change)
}
