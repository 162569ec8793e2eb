package models

import "slices"

// LocalProvider is the provider of models that workers have loaded; those of any other are asked from outside.
const LocalProvider = "worker"

// DefaultQuality is the name under which a model's quality stands for the task types that it does not name.
const DefaultQuality = "default"

// Model is a model that tasks may be given to: what it costs, how good it is at what, and how much of it there is. Prices are
// in millionths of a dollar for a million tokens.
type Model struct {
	Tenant          int32              `json:"tenant"` // 0: the platform's, which every tenant sees that has none of this name itself
	Name            string             `json:"name"`
	Provider        string             `json:"provider"`
	TaskTypes       []string           `json:"task_types"` // patterns; empty: all
	InputMicro      int64              `json:"input_micro"`
	OutputMicro     int64              `json:"output_micro"`
	CachedMicro     *int64             `json:"cached_micro"`   // nil: like input
	ContextTokens   *int64             `json:"context_tokens"` // nil: not known
	Quality         map[string]float64 `json:"quality"`        // 0–1 by task type, DefaultQuality for the rest
	LatencyMS       *int64             `json:"latency_ms"`     // nil: not known
	VRAMMB          *int64             `json:"vram_mb"`        // that it takes where it is loaded; nil: not known
	BatchDiscount   float64            `json:"batch_discount"` // 0–1, off the price of what nobody waits for
	OffPeak         []OffPeak          `json:"off_peak"`
	Fallbacks       []string           `json:"fallbacks"`         // serve in this order while its breaker is open
	MaxConcurrent   *int64             `json:"max_concurrent"`    // live tasks; nil: no limit
	TokensPerMinute *int64             `json:"tokens_per_minute"` // ≥ 1; nil: no limit
	Enabled         bool               `json:"enabled"`
	CreatedAt       Instant            `json:"created_at"`
	UpdatedAt       Instant            `json:"updated_at"`
	Version         int64              `json:"version"`
}

// OffPeak is a time in which a model costs its price times a factor.
type OffPeak struct {
	Window
	Factor float64 `json:"factor"`
}

// ModelRef names an entry.
type ModelRef struct {
	Tenant int32  `json:"tenant"`
	Name   string `json:"name"`
}

// Whole is the model with lists that are there, though empty: it reads the same from wherever it comes.
func (m Model) Whole() Model {
	if m.TaskTypes == nil {
		m.TaskTypes = []string{}
	}
	if m.OffPeak == nil {
		m.OffPeak = []OffPeak{}
	}
	if m.Fallbacks == nil {
		m.Fallbacks = []string{}
	}
	if m.Quality == nil {
		m.Quality = map[string]float64{}
	}
	return m
}

// Ref names the entry.
func (m *Model) Ref() ModelRef { return ModelRef{m.Tenant, m.Name} }

// Local says that workers have it loaded.
func (m *Model) Local() bool { return m.Provider == LocalProvider }

// Serves says that tasks of a type may be given to it.
func (m *Model) Serves(taskType string) bool {
	return len(m.TaskTypes) == 0 || MatchPattern(m.TaskTypes, taskType)
}

// QualityFor is how good it is said to be at tasks of a type; false when nobody said anything.
func (m *Model) QualityFor(taskType string) (float64, bool) {
	if q, ok := m.Quality[taskType]; ok {
		return q, true
	}
	q, ok := m.Quality[DefaultQuality]
	return q, ok
}

// ModelAsk is what a task wants of the model that is chosen for it.
type ModelAsk struct {
	QualityTarget float64  `json:"quality_target,omitempty"` // 0: any will do
	MaxLatencyMS  int64    `json:"max_latency_ms,omitempty"` // 0: no matter
	Candidates    []string `json:"candidates,omitempty"`     // empty: all
}

// Allows says that a model is among the candidates.
func (a *ModelAsk) Allows(name string) bool {
	return len(a.Candidates) == 0 || slices.Contains(a.Candidates, name)
}

// Choice is a model that was chosen for a task, one row each time: what was wanted, what came out and why. An empty Chosen says
// that no model fits.
type Choice struct {
	Env     int32         `json:"env"`
	Task    ID            `json:"task"`
	N       int32         `json:"n"` // 1 for the first
	At      Instant       `json:"at"`
	Asked   *ModelAsk     `json:"asked,omitempty"` // nil: a model was asked for by name
	Named   string        `json:"named,omitempty"` // that one
	Chosen  string        `json:"chosen,omitempty"`
	Reason  string        `json:"reason"`
	Failed  []string      `json:"failed,omitempty"` // models whose results were not good enough
	Ranking []RankedModel `json:"ranking,omitempty"`
}

// RankedModel is one line of a ranking.
type RankedModel struct {
	Model      string  `json:"model"`
	CostMicro  int64   `json:"cost_micro"`
	QualityLow float64 `json:"quality_low"`
	Why        string  `json:"why"`
	Gone       bool    `json:"gone,omitempty"`    // there is no such model: the numbers say nothing
	Instead    string  `json:"instead,omitempty"` // of the first: the model that a budget did not cover, so that this one was taken
}

// ModelSeen is what a tenant's tasks of a type saw of a model, in sums that fade: Good of Judged results, and what Runs of them
// used.
type ModelSeen struct {
	Tenant  int32   `json:"tenant"`
	Type    string  `json:"type"`
	Model   string  `json:"model"`
	Judged  float64 `json:"judged"`
	Good    float64 `json:"good"`
	Runs    float64 `json:"runs"`
	In      float64 `json:"tokens_in"`
	Out     float64 `json:"tokens_out"`
	Cached  float64 `json:"tokens_cached"`
	Seconds float64 `json:"seconds"`
}

// ModelBreaker is a breaker that is not shut: while it is open a tenant's tasks are not given to the model.
type ModelBreaker struct {
	Tenant int32   `json:"tenant"`
	Model  string  `json:"model"`
	Opened int32   `json:"opened"` // how often since it was last shut; 0: it is shut again
	Until  Instant `json:"until"`  // open until then; after it one task at a time tries
	Class  string  `json:"class"`  // of the failure that opened it
}

// ModelLevel is what was left of a model's tokens a minute, as scheduler/rate counts it.
type ModelLevel struct {
	Tenant int32   `json:"tenant"`
	Model  string  `json:"model"`
	Credit int64   `json:"credit"`
	At     Instant `json:"at"`
}

// ModelPlan is what a batch changes of models: whole rows.
type ModelPlan struct {
	Gone     []ModelRef // deleted before Models are written
	Models   []Model
	Choices  []Choice
	Seen     []ModelSeen
	Breakers []ModelBreaker
	Levels   []ModelLevel
}

// Empty says that nothing changes.
func (p *ModelPlan) Empty() bool {
	return len(p.Gone)+len(p.Models)+len(p.Choices)+len(p.Seen)+len(p.Breakers)+len(p.Levels) == 0
}

// ModelSnapshot is what a board knows of models.
type ModelSnapshot struct {
	Models   []Model
	Seen     []ModelSeen
	Breakers []ModelBreaker
	Levels   []ModelLevel
}

// ModelGate is where a ready task is parked that waits for a model that fits.
const ModelGate = "model"
