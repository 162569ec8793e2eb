package storetest

import (
	"nightshift/models"
	"nightshift/scheduler/engine"
)

var modelNames = []string{"small", "middle", "large"}

// model adds, changes or removes a model, the platform's or a tenant's own.
func (r *run) model() *engine.Command {
	tenant := int32(0)
	if r.chance(50) {
		tenant = pick(r, r.known.tenants).Number
	}
	r.known.outage = r.chance(60)
	n := r.rng.IntN(3)
	ref := models.ModelRef{Tenant: tenant, Name: modelNames[n]}
	if r.chance(20) {
		return r.configure(&engine.Configure{DeleteModel: &ref, Version: -1, Action: "model.delete"})
	}
	row := models.Model{
		Tenant: ref.Tenant, Name: ref.Name, Provider: "outside", InputMicro: int64(1+n) * 1_000_000, OutputMicro: int64(1+n) * 2_000_000,
		Quality: map[string]float64{models.DefaultQuality: 0.7 + 0.13*float64(n), "a.one": 0.9}, BatchDiscount: float64(r.rng.IntN(2)) / 2,
		MaxConcurrent: r.maybe(3), TokensPerMinute: r.maybe(2_000), Enabled: r.chance(85),
	}
	if n == 0 && r.chance(50) {
		row.Provider = models.LocalProvider
	}
	if r.chance(40) {
		row.Fallbacks = []string{"large", "middle"}
	}
	if r.chance(20) {
		row.TaskTypes, row.ContextTokens = []string{"a.*", "b.one"}, r.maybe(1_000)
	}
	if r.chance(20) {
		row.OffPeak = []models.OffPeak{{Window: models.Window{Cron: "* * * * *", DurationSeconds: 1 + r.rng.Int32N(59)}, Factor: 0.25}}
	}
	return r.configure(&engine.Configure{Model: &row, Version: -1, Action: "model.put"})
}

// asks lets a task leave the choice of its model to the engine.
func (r *run) asks(t *engine.NewTask) {
	t.Class.Model = ""
	r.known.modelled[t.ID] = true
	t.MaxAttempts = 3
	t.Model = &models.ModelAsk{QualityTarget: pick(r, []float64{0, 0, 0, 0.6, 0.7, 0.9})}
	if r.chance(30) {
		t.Model.Candidates = []string{pick(r, modelNames), pick(r, append(modelNames, "unheard"))}
	}
	if r.chance(30) {
		t.Tokens = 1 + r.rng.Int64N(900)
		t.Class.Tokens = true
	}
}

// lookModels asks what is known of models, or what would be chosen.
func (r *run) lookModels(look *engine.Look) {
	env := pick(r, r.known.envs)
	if r.chance(50) {
		look.Models = &env.Tenant
		return
	}
	look.Route = &engine.RouteAsk{Tenant: env.Tenant, Env: env.Env, Type: "a.one", Ask: &models.ModelAsk{QualityTarget: 0.8}}
}

// chose counts what a plan chose.
func (r *run) chose(p *models.ModelPlan) {
	for i := range p.Choices {
		switch c := &p.Choices[i]; {
		case c.Chosen == "":
			r.counts.Unchosen++
		case c.N == 1:
			r.counts.Chosen++
		case len(c.Failed) > 0:
			r.counts.Climbed++
		default:
			r.counts.Rechosen++
		}
	}
	for i := range p.Breakers {
		if p.Breakers[i].Opened > 0 {
			r.counts.Breakers++
		}
	}
}
