package api

import (
	"cmp"
	"maps"
	"math"
	"net/url"
	"slices"
	"strings"

	"github.com/gofiber/fiber/v2"

	"nightshift/handlers"
	"nightshift/handlers/body"
	"nightshift/models"
	"nightshift/scheduler/calendar"
	"nightshift/scheduler/engine"
)

func modelRoutes() []handlers.Route {
	const tag = "Models"
	put := endpoint(fiber.MethodPut, "/v1/models/:name", writes, false, tag, "Put a model in place: the tenant's own, or without a tenant the platform's", putModel, ModelInput{}, 200, ModelEntry{})
	put.Doc.Replies[201] = ModelEntry{}
	put.Doc.Detail = "What is left out takes its preset. A tenant's own model wins for it over the platform's of the same name. " +
		"If-Match takes the ETag that was read: that of the platform's model makes the tenant's own, while the platform's still stands as it was read."
	route := endpoint(post, "/v1/models/route", seeing, false, tag, "Which model a task would get now, and how the others rank", routeModel, TaskInput{}, 200, RouteAnswer{})
	route.Doc.Detail = "The body is a task; nothing is made. Where no model fits, chosen is null."
	return []handlers.Route{
		named(endpoint(get, "/v1/models", seeing, false, tag, "List the models that the tenant sees, by name", listModels, nil, 200, handlers.Page[ModelEntry]{})),
		route,
		endpoint(get, "/v1/models/:name", seeing, false, tag, "Read a model", getModel, nil, 200, ModelEntry{}),
		put,
		endpoint(remove, "/v1/models/:name", writes, false, tag, "Remove a model; tasks that had it chosen get another", deleteModel, nil, 204, nil),
	}
}

// ModelEntry is a model as the API shows it.
type ModelEntry struct {
	Name            string             `json:"name"`
	Platform        bool               `json:"platform" doc:"it is the platform's, and every tenant sees it that has none of this name itself"`
	Provider        string             `json:"provider" doc:"worker: loaded on workers"`
	TaskTypes       []string           `json:"task_types" doc:"patterns, exact or ending in *; empty: all"`
	InputUSD        float64            `json:"input_usd_per_million"`
	OutputUSD       float64            `json:"output_usd_per_million"`
	CachedUSD       *float64           `json:"cached_usd_per_million" doc:"null: like input"`
	ContextTokens   *int64             `json:"context_tokens"`
	Quality         map[string]float64 `json:"quality" doc:"0 to 1 by task type, default for the rest"`
	LatencyMS       *int64             `json:"latency_ms"`
	VRAMMB          *int64             `json:"vram_mb"`
	BatchDiscount   float64            `json:"batch_discount" doc:"the part taken off the price of tasks of the kind batch"`
	OffPeak         []OffPeak          `json:"off_peak"`
	Fallbacks       []string           `json:"fallbacks" doc:"serve in this order while its breaker is open"`
	MaxConcurrent   *int64             `json:"max_concurrent" doc:"null: no limit"`
	TokensPerMinute *int64             `json:"tokens_per_minute" doc:"null: no limit"`
	Enabled         bool               `json:"enabled"`
	CreatedAt       handlers.Time      `json:"created_at"`
	UpdatedAt       handlers.Time      `json:"updated_at"`
	Version         int64              `json:"version"`
}

// OffPeak is a time in which a model costs its price times a factor.
type OffPeak struct {
	Window
	Factor float64 `json:"factor" required:"true" minimum:"0" maximum:"100"`
}

// ModelInput puts a model in place.
type ModelInput struct {
	Provider        handlers.Opt[string]             `json:"provider" doc:"worker, which is the preset: loaded on workers; any other name: it answers from outside"`
	TaskTypes       handlers.Opt[[]string]           `json:"task_types"`
	InputUSD        handlers.Opt[float64]            `json:"input_usd_per_million"`
	OutputUSD       handlers.Opt[float64]            `json:"output_usd_per_million"`
	CachedUSD       handlers.Opt[float64]            `json:"cached_usd_per_million"`
	ContextTokens   handlers.Opt[int64]              `json:"context_tokens"`
	Quality         handlers.Opt[map[string]float64] `json:"quality"`
	LatencyMS       handlers.Opt[int64]              `json:"latency_ms"`
	VRAMMB          handlers.Opt[int64]              `json:"vram_mb"`
	BatchDiscount   handlers.Opt[float64]            `json:"batch_discount"`
	OffPeak         handlers.Opt[[]OffPeak]          `json:"off_peak"`
	Fallbacks       handlers.Opt[[]string]           `json:"fallbacks"`
	MaxConcurrent   handlers.Opt[int64]              `json:"max_concurrent"`
	TokensPerMinute handlers.Opt[int64]              `json:"tokens_per_minute"`
	Enabled         handlers.Opt[bool]               `json:"enabled" doc:"true when left out"`
}

const (
	mostPrice     = 1_000_000 // dollars a million tokens
	mostFallbacks = 10
	mostQualities = 200
	mostLatency   = 86_400_000
)

func showModel(m models.Model) ModelEntry {
	v := ModelEntry{
		Name: m.Name, Platform: m.Tenant == 0, Provider: m.Provider, TaskTypes: handlers.List(m.TaskTypes), InputUSD: dollars(m.InputMicro), OutputUSD: dollars(m.OutputMicro),
		ContextTokens: m.ContextTokens, Quality: m.Quality, LatencyMS: m.LatencyMS, VRAMMB: m.VRAMMB, BatchDiscount: m.BatchDiscount, OffPeak: []OffPeak{},
		Fallbacks: handlers.List(m.Fallbacks), MaxConcurrent: m.MaxConcurrent, TokensPerMinute: m.TokensPerMinute, Enabled: m.Enabled,
		CreatedAt: handlers.Time(m.CreatedAt), UpdatedAt: handlers.Time(m.UpdatedAt), Version: m.Version,
	}
	if m.CachedMicro != nil {
		usd := dollars(*m.CachedMicro)
		v.CachedUSD = &usd
	}
	for _, p := range m.OffPeak {
		v.OffPeak = append(v.OffPeak, OffPeak{Window{p.Cron, p.DurationSeconds, cmp.Or(p.Timezone, "UTC")}, p.Factor})
	}
	return v
}

// whole is the model that was put, with presets where nothing was given.
func (in *ModelInput) whole(ref models.ModelRef) (models.Model, error) {
	var k handlers.Check
	m := models.Model{
		Tenant: ref.Tenant, Name: ref.Name, Provider: in.Provider.Or(models.LocalProvider), TaskTypes: in.TaskTypes.Or(nil), Quality: in.Quality.Or(nil),
		BatchDiscount: in.BatchDiscount.Or(0), Fallbacks: in.Fallbacks.Or(nil), Enabled: in.Enabled.Or(true),
	}
	k.Name("body.provider", m.Provider)
	k.That(len(m.TaskTypes) <= 200, "body.task_types", "at most 200 patterns")
	for i, pattern := range m.TaskTypes {
		k.Name(body.At("body.task_types", i), cmp.Or(strings.TrimSuffix(pattern, "*"), "any"))
	}
	m.InputMicro, m.OutputMicro = sum(&k, "body.input_usd_per_million", in.InputUSD.Or(0), mostPrice), sum(&k, "body.output_usd_per_million", in.OutputUSD.Or(0), mostPrice)
	if in.CachedUSD.Given && !in.CachedUSD.Null {
		micro := sum(&k, "body.cached_usd_per_million", in.CachedUSD.Value, mostPrice)
		m.CachedMicro = &micro
	}
	m.ContextTokens = number(&k, "body.context_tokens", in.ContextTokens, 1, maxTokens)
	m.LatencyMS = number(&k, "body.latency_ms", in.LatencyMS, 0, mostLatency)
	m.VRAMMB = number(&k, "body.vram_mb", in.VRAMMB, 0, maxMemoryMB)
	m.MaxConcurrent = number(&k, "body.max_concurrent", in.MaxConcurrent, 0, mostQuota)
	m.TokensPerMinute = number(&k, "body.tokens_per_minute", in.TokensPerMinute, 1, mostQuota)
	handlers.Range(&k, "body.batch_discount", m.BatchDiscount, 0, 1)
	checkQuality(&k, m.Quality)
	checkFallbacks(&k, &m)
	if err := in.offPeak(&k, &m); err != nil && k.OK() {
		return m, err
	}
	return m, k.Err()
}

func number(k *handlers.Check, at string, given handlers.Opt[int64], least, most int64) *int64 {
	if !given.Given || given.Null {
		return nil
	}
	handlers.Range(k, at, given.Value, least, most)
	value := given.Value
	return &value
}

func checkQuality(k *handlers.Check, quality map[string]float64) {
	k.That(len(quality) <= mostQualities, "body.quality", "it must have at most %d entries", mostQualities)
	for _, typ := range slices.Sorted(maps.Keys(quality)) {
		at := "body.quality." + handlers.Shorten(typ, 128)
		k.Name(at, typ)
		handlers.Range(k, at, quality[typ], 0, 1)
	}
}

func checkFallbacks(k *handlers.Check, m *models.Model) {
	k.That(len(m.Fallbacks) <= mostFallbacks, "body.fallbacks", "it must have at most %d entries", mostFallbacks)
	for i, name := range m.Fallbacks {
		at := body.At("body.fallbacks", i)
		k.Name(at, name)
		k.That(name != m.Name, at, "a model is no fallback of itself")
		k.That(!slices.Contains(m.Fallbacks[:i], name), at, "%s stands there twice", name)
	}
}

func (in *ModelInput) offPeak(k *handlers.Check, m *models.Model) error {
	windows := []models.Window{}
	for i, p := range in.OffPeak.Or(nil) {
		handlers.Range(k, body.Dot(body.At("body.off_peak", i), "factor"), p.Factor, 0, 100)
		window := models.Window{Cron: p.Cron, DurationSeconds: p.DurationSeconds, Timezone: p.Timezone}
		windows = append(windows, window)
		m.OffPeak = append(m.OffPeak, models.OffPeak{Window: window, Factor: p.Factor})
	}
	_, err := calendar.ParseWindows("body.off_peak", windows)
	return err
}

// namedModel is the model that a path names, of whoever asks.
func namedModel(c *fiber.Ctx) (models.ModelRef, error) {
	name, err := handlers.PathParam(c, "name")
	if err == nil && !handlers.IsName(name) {
		err = models.Errorf(models.NotFound, "there is no model %q", handlers.Shorten(name, 60))
	}
	return models.ModelRef{Tenant: handlers.CallerOf(c).Tenant, Name: name}, err
}

func listModels(d *handlers.Deps, c *fiber.Ctx) error {
	return byName(d, c, func(after string, desc bool, most int) ([]models.Model, int64, error) {
		return d.World.Models(c.UserContext(), handlers.CallerOf(c).Tenant, after, desc, most)
	}, showModel, func(m models.Model) string { return m.Name })
}

func getModel(d *handlers.Deps, c *fiber.Ctx) error {
	if err := handlers.NoQuery(c); err != nil {
		return err
	}
	ref, err := namedModel(c)
	if err != nil {
		return err
	}
	m, err := d.World.Model(c.UserContext(), ref.Tenant, ref.Name)
	if err != nil {
		return err
	}
	if handlers.SetETag(c, m.Version); m.Tenant != ref.Tenant {
		handlers.SetETagOver(c, m.Version)
	}
	return handlers.Answer(c, fiber.StatusOK, showModel(m))
}

func putModel(d *handlers.Deps, c *fiber.Ctx) error {
	var in ModelInput
	if err := handlers.NoQuery(c); err != nil {
		return err
	}
	if err := handlers.Bind(c, &in); err != nil {
		return err
	}
	ref, err := namedModel(c)
	if err != nil {
		return err
	}
	m, err := in.whole(ref)
	if err != nil {
		return err
	}
	answer, err := replaceModel(d, c, ref, &m)
	if err != nil {
		return err
	}
	status := fiber.StatusOK
	if answer.Model.Version == 1 {
		status = fiber.StatusCreated
		c.Location("/v1/models/" + url.PathEscape(ref.Name))
	}
	handlers.SetETag(c, answer.Model.Version)
	return handlers.Answer(c, status, showModel(*answer.Model))
}

// replaceModel puts a tenant's own, or the platform's, in place. With the tag of the platform's entry that a tenant read, it is the
// tenant's first of that name, and the platform's still stands as it was read.
func replaceModel(d *handlers.Deps, c *fiber.Ctx, ref models.ModelRef, m *models.Model) (*engine.Answer, error) {
	if over := handlers.IfMatchOver(c); over > 0 && ref.Tenant != 0 {
		return configure(d, c, &engine.Configure{Model: m, Over: over, Action: "model.put"})
	}
	read := func() (models.Model, int64, error) {
		own, err := d.World.OwnModel(c.UserContext(), ref.Tenant, ref.Name)
		if models.CodeOf(err) == models.NotFound {
			return own, seenModel(d, c, ref), nil
		}
		return own, own.Version, err
	}
	return edit(d, c, read, func(*models.Model) (*engine.Configure, error) {
		return &engine.Configure{Model: m, Action: "model.put"}, nil
	})
}

// seenModel is the version of what a first model of its own stands over for a tenant: 0, which is none of its own, where the
// platform has one of the name.
func seenModel(d *handlers.Deps, c *fiber.Ctx, ref models.ModelRef) int64 {
	if _, err := d.World.OwnModel(c.UserContext(), 0, ref.Name); err != nil {
		return absent
	}
	return 0
}

func deleteModel(d *handlers.Deps, c *fiber.Ctx) error {
	if err := handlers.NoQuery(c); err != nil {
		return err
	}
	ref, err := namedModel(c)
	if err != nil {
		return err
	}
	read := func() (models.Model, int64, error) {
		own, err := d.World.OwnModel(c.UserContext(), ref.Tenant, ref.Name)
		return own, own.Version, err
	}
	_, err = edit(d, c, read, func(*models.Model) (*engine.Configure, error) {
		return &engine.Configure{DeleteModel: &ref, Action: "model.delete"}, nil
	})
	if err != nil {
		return err
	}
	return handlers.NoContent(c)
}

// RouteAnswer says which model a task would get.
type RouteAnswer struct {
	Chosen  *string      `json:"chosen" doc:"null: none fits, and the task would wait"`
	Reason  string       `json:"reason"`
	Ranking []RankedView `json:"ranking" doc:"the chosen one first, then by price what fits, then the rest"`
}

// RankedView is one line of a ranking.
type RankedView struct {
	Model      string   `json:"model"`
	CostUSD    *float64 `json:"cost_usd" doc:"of one run, as expected now; null of a candidate that does not exist"`
	QualityLow *float64 `json:"quality_low" doc:"that it has at least, with nine tenths of certainty; null of a candidate that does not exist"`
	Why        string   `json:"why"`
}

// routeModel says which model a task would get. It is read as a task is, so that nothing means something else here.
func routeModel(d *handlers.Deps, c *fiber.Ctx) error {
	if err := handlers.NoQuery(c); err != nil {
		return err
	}
	text, err := handlers.ReadBody(c)
	if err != nil {
		return err
	}
	r := reader(d, c)
	r.loose, r.lanes = true, nil // its payload is nobody's business here, nor who may submit where
	v, err := body.Open(text, "body", r.problem)
	if err != nil {
		return err
	}
	task := r.task(v)
	if err := r.err(); err != nil {
		return err
	}
	caller := handlers.CallerOf(c)
	answer, err := ask(d, c, func(cmd *engine.Command) {
		cmd.Look = &engine.Look{Route: &engine.RouteAsk{
			Tenant: caller.Tenant, Env: caller.Env, Type: task.Class.Type, Lane: task.Lane, Tokens: task.Tokens, Named: task.Class.Model, Ask: task.Model,
		}}
	})
	if err != nil {
		return err
	}
	got := answer.Looked.Routed
	out := RouteAnswer{Chosen: handlers.Null(got.Chosen), Reason: got.Reason, Ranking: make([]RankedView, len(got.Ranking))}
	for i, line := range got.Ranking {
		out.Ranking[i] = RankedView{Model: line.Model, Why: line.Why}
		if !line.Gone {
			cost, low := dollars(line.CostMicro), math.Round(line.QualityLow*1e6)/1e6
			out.Ranking[i].CostUSD, out.Ranking[i].QualityLow = &cost, &low
		}
	}
	return handlers.Answer(c, fiber.StatusOK, out)
}
