package engine

import (
	"encoding/json"
	"fmt"
	"slices"

	"nightshift/models"
	"nightshift/scheduler/board"
	"nightshift/scheduler/route"
)

// mostRanked is how many lines of a ranking are kept with a choice.
const mostRanked = 20

// optionsFor names what choices of one batch have in common.
type optionsFor struct {
	tenant int32
	typ    string
	batch  bool // nobody waits for the tasks
}

// options are the models that a tenant's tasks of a type may be given to. They are the same for a whole batch until something
// about models changes.
func (e *Engine) options(of optionsFor) []route.Option {
	if list, known := e.b.options[of]; known {
		return list
	}
	entries := e.board.ModelsOf(of.tenant)
	list := make([]route.Option, 0, len(entries))
	for _, m := range entries {
		o := route.Option{
			Model: &m.Model, Factor: route.Factor(&m.Model, m.OffPeak(e.now), of.batch), Uses: e.taught.Uses(of.tenant, of.typ, m.Name, 0),
			Seen: e.taught.Of(of.tenant, of.typ, m.Name), Low: e.taught.Low(of.tenant, of.typ, &m.Model),
			Absent: m.Local() && !e.board.Loaded(of.tenant, m.Name),
		}
		if u := e.board.UseOfModel(of.tenant, m.Name); u != nil && u.Open() {
			o.Shut = fmt.Sprintf("its breaker is open after %s", u.Breaker.Class)
		}
		list = append(list, o)
	}
	if e.b.options == nil {
		e.b.options = map[optionsFor][]route.Option{}
	}
	e.b.options[of] = list
	return list
}

// chosen is the outcome of a choice.
type chosen struct {
	name, reason string // an empty name: none fits
	hosted       bool
	ranking      []models.RankedModel
}

// choose picks a model among options.
func (e *Engine) choose(of optionsFor, ask *route.Ask, options []route.Option) chosen {
	for _, name := range ask.Candidates {
		if !slices.ContainsFunc(options, func(o route.Option) bool { return o.Model.Name == name }) {
			options = append(slices.Clone(options), route.Option{Model: &models.Model{Name: name}, Gone: true})
		}
	}
	ranking := route.Rank(ask, options)
	name, reason := route.Choose(ask, ranking)
	return e.outcome(of, ask, ranking, name, reason)
}

// outcome is a choice with its ranking, what was chosen first.
func (e *Engine) outcome(of optionsFor, ask *route.Ask, ranking []route.Ranked, name, reason string) chosen {
	out := chosen{name: name, reason: reason}
	if at := slices.IndexFunc(ranking, func(r route.Ranked) bool { return r.Name == name }); at > 0 && name != "" {
		first := ranking[at]
		ranking = slices.Insert(slices.Delete(ranking, at, at+1), 0, first)
	}
	for i := range ranking {
		if r := &ranking[i]; len(ask.Candidates) == 0 || slices.Contains(ask.Candidates, r.Name) {
			out.ranking = append(out.ranking, models.RankedModel{Model: r.Name, CostMicro: r.CostMicro, QualityLow: r.Low, Why: r.Why, Gone: r.Gone})
		}
	}
	if len(out.ranking) > 0 && name != "" {
		out.ranking[0].Why = reason
	}
	if m := e.board.ModelNamed(of.tenant, name); m != nil {
		out.hosted = !m.Local()
	}
	return out
}

// kept is as much of a ranking as is kept with a task.
func kept(ranking []models.RankedModel) []models.RankedModel {
	return ranking[:min(len(ranking), mostRanked)]
}

// assign gives a new task of an environment its model, which is part of its class: the one it names, or the one that is chosen for
// it. Of a choice it answers what is kept.
func (e *Engine) assign(env int32, t *NewTask, kind models.KindName) *models.Choice {
	tenant := e.board.TenantOf(env)
	if t.Model == nil {
		m := e.entryOf(tenant, &t.Class)
		t.Class.Hosted = m != nil && !m.Local()
		return nil
	}
	of := optionsFor{tenant, t.Class.Type, kind == models.Batch}
	ask := &route.Ask{ModelAsk: *t.Model, Type: of.typ, Tokens: t.Tokens}
	got := e.choose(of, ask, e.options(of))
	t.Class.Model, t.Class.Hosted, t.Class.Chosen = got.name, got.hosted, true
	if lower, ok := e.lower(&models.Task{Env: env, CostMicro: t.CostMicro, Tokens: t.Tokens}, &t.Class, of, ask); ok {
		got = lower
		t.Class.Model, t.Class.Hosted = got.name, got.hosted
	}
	return &models.Choice{N: 1, At: e.now, Asked: t.Model, Chosen: got.name, Reason: got.reason, Ranking: kept(got.ranking)}
}

// unchosen says that a task whose model is chosen for it has none.
func (e *Engine) unchosen(row *models.Task) bool {
	if !row.Has(models.ChoosesModel) {
		return false
	}
	class := e.board.Classes[row.Class]
	return class != nil && class.Model == ""
}

// priceOn is what a task of a type is expected to cost a tenant on a model now, in millionths of a dollar; false when nothing is
// known of the model. tokens is the caller's word for what it uses, 0: none.
func (e *Engine) priceOn(tenant int32, typ, model string, tokens int64, kind models.KindName) (micro int64, ok bool) {
	m := e.board.ModelNamed(tenant, model)
	if m == nil {
		return 0, false
	}
	return route.Price(&m.Model, e.taught.Uses(tenant, typ, model, tokens), route.Factor(&m.Model, m.OffPeak(e.now), kind == models.Batch)), true
}

// needChoices asks for what was wanted of the models of tasks that are to get others: those that were read, and those at hand in
// lines whose model gives them nothing.
func (e *Engine) needChoices(n *models.Need) {
	e.rechoose = e.rechoose[:0]
	seen := map[models.ID]bool{}
	add := func(row *models.Task) {
		if seen[row.ID] || len(e.rechoose) >= e.cfg.Slice {
			return
		}
		seen[row.ID] = true
		e.rechoose = append(e.rechoose, *row)
		if row.Has(models.ChoosesModel) {
			n.Choices = append(n.Choices, models.TaskRef{Env: row.Env, ID: row.ID})
		}
	}
	for i := range e.modelless {
		add(&e.modelless[i])
	}
	e.modelless = e.modelless[:0]
	for _, entry := range e.board.StrandedHeads(e.cfg.Slice - len(e.rechoose)) {
		add(&entry.Row)
	}
}

// decideChoices gives tasks other models, or parks them until there is one.
func (e *Engine) decideChoices() {
	for i := range e.rechoose {
		row := e.peek(models.TaskRef{Env: e.rechoose[i].Env, ID: e.rechoose[i].ID})
		if row == nil {
			row = &e.rechoose[i] // it stands parked, and nobody holds it
		}
		copied := *row
		switch {
		case row.State != models.Ready:
		case row.Gate == models.ModelGate || row.Gate == "" && e.board.Stranded(board.LineOf(row)):
			e.chooseAgain(&copied)
		case models.IsBudgetGate(row.Gate):
			e.downgrade(&copied)
		}
	}
	e.rechoose = e.rechoose[:0]
}

// chooseAgain chooses for a task whose model gives it nothing. Where none fits it is parked; what is parked stays so.
func (e *Engine) chooseAgain(row *models.Task) {
	class := e.board.Classes[row.Class]
	if class == nil {
		return
	}
	next, choice := *class, (*models.Choice)(nil)
	if class.Chosen {
		next, choice = e.anotherChoice(row, class)
	} else {
		name, hosted, ok := e.board.Substitute(e.board.TenantOf(row.Env), class)
		if !ok {
			return
		}
		if next.Model, next.Hosted = name, hosted; name != class.Model {
			next, choice = e.fallback(row, class, next)
		}
	}
	fits := next.Model != "" && e.mayIntern(row.Env, &next)
	if row.Gate == models.ModelGate && !fits {
		return
	}
	c := e.enlist(row)
	e.stepOut(c)
	c.row.UpdatedAt = e.now
	if choice != nil {
		e.keepChoice(&c.row, choice)
	}
	if !fits {
		e.parkAt(c, models.ModelGate)
		e.sync(c)
		return
	}
	c.row.Class = e.internClass(next)
	e.place(c)
}

// mayIntern says that an environment may have tasks of a class beside those it has.
func (e *Engine) mayIntern(env int32, class *models.Class) bool {
	return e.hasClass(env, e.board.ClassNumber(*class)) || e.liveClasses(env) < MostClasses
}

// anotherChoice chooses anew by what was wanted at first.
func (e *Engine) anotherChoice(row *models.Task, class *models.Class) (models.Class, *models.Choice) {
	next, last := *class, e.b.facts.Choices[models.TaskRef{Env: row.Env, ID: row.ID}]
	of := optionsFor{e.board.TenantOf(row.Env), class.Type, e.kindOf(row) == models.Batch}
	ask := route.Ask{Type: of.typ, Tokens: row.Tokens, Failed: last.Failed}
	if last.Asked != nil {
		ask.ModelAsk = *last.Asked
	}
	got := e.choose(of, &ask, e.options(of))
	next.Model, next.Hosted = got.name, got.hosted
	return next, &models.Choice{
		N: last.N + 1, At: e.now, Asked: last.Asked, Named: last.Named, Chosen: got.name, Reason: got.reason, Failed: last.Failed, Ranking: kept(got.ranking),
	}
}

// fallback is what is kept of a task that named a model and gets a fallback of it: from now on its model is one that was chosen.
func (e *Engine) fallback(row *models.Task, class *models.Class, next models.Class) (models.Class, *models.Choice) {
	next.Chosen = true
	ask := &models.ModelAsk{Candidates: []string{class.Model}}
	reason := fmt.Sprintf("it is a fallback of %s", class.Model)
	if u := e.board.UseOfModel(e.board.TenantOf(row.Env), class.Model); u != nil && u.Entry != nil {
		ask.Candidates = append(ask.Candidates, u.Entry.Fallbacks...)
		reason = fmt.Sprintf("it is a fallback of %s: its breaker is open after %s", class.Model, u.Breaker.Class)
	}
	return next, &models.Choice{N: 1, At: e.now, Asked: ask, Named: class.Model, Chosen: next.Model, Reason: reason}
}

// keepChoice writes down what was chosen for a task.
func (e *Engine) keepChoice(row *models.Task, choice *models.Choice) {
	row.Flags |= models.ChoosesModel
	choice.Env, choice.Task = row.Env, row.ID
	e.b.plan.Models.Choices = append(e.b.plan.Models.Choices, *choice)
}

// climb gives a task whose result was not good enough to the next better model; nil where there is none. It is called before the
// attempt ends, whose record names the model that failed.
func (e *Engine) climb(row *models.Task) *models.Choice {
	class := e.board.Classes[row.Class]
	last, known := e.b.facts.Choices[models.TaskRef{Env: row.Env, ID: row.ID}]
	if !row.Has(models.ChoosesModel) || !known || class == nil || last.Named != "" {
		return nil
	}
	of := optionsFor{e.board.TenantOf(row.Env), class.Type, e.kindOf(row) == models.Batch}
	ask := route.Ask{Type: of.typ, Tokens: row.Tokens, Failed: append(slices.Clone(last.Failed), class.Model)}
	if last.Asked != nil {
		ask.ModelAsk = *last.Asked
	}
	got := e.choose(of, &ask, route.Better(&ask, e.options(of), class.Model))
	next := *class
	if next.Model, next.Hosted = got.name, got.hosted; got.name == "" || !e.mayIntern(row.Env, &next) {
		return nil
	}
	return &models.Choice{N: last.N + 1, At: e.now, Asked: last.Asked, Chosen: got.name, Reason: got.reason, Failed: ask.Failed, Ranking: kept(got.ranking)}
}

// climbed moves a task that is to be tried again to the model that was chosen.
func (e *Engine) climbed(c *change, choice *models.Choice) {
	next := *e.board.Classes[c.row.Class]
	m := e.board.ModelNamed(e.board.TenantOf(c.row.Env), choice.Chosen)
	next.Model, next.Hosted = choice.Chosen, m != nil && !m.Local()
	e.awaits(&c.row, -1)
	c.row.Class = e.internClass(next)
	e.awaits(&c.row, 1)
	e.keepChoice(&c.row, choice)
	e.sync(c)
}

// reported is what of a usage says something of a model.
type reported struct {
	In      int64    `json:"tokens_in"`
	Out     int64    `json:"tokens_out"`
	Cached  int64    `json:"tokens_cached"`
	CostUSD *float64 `json:"cost_usd"`
	Quality *float64 `json:"quality"`
}

// learn notes what an attempt says of the model that it used: what it used, how good its result was, and whether its provider answers.
func (e *Engine) learn(lease *board.Lease, typ, model string, outcome models.Outcome, failure *models.TaskError, usage []byte) {
	if model == "" {
		return
	}
	var said reported
	if len(usage) > 0 {
		_ = json.Unmarshal(usage, &said) // read at the edge
	}
	tenant, row := lease.Tenant, lease.Row()
	switch {
	case outcome == models.AttemptSucceeded:
		if said.In+said.Out > 0 {
			e.taught.Ran(tenant, typ, model, route.Use{In: float64(said.In), Out: float64(said.Out), Cached: float64(said.Cached)}, e.now.Sub(row.StartedAt).Seconds())
		}
		if breaker, shut := e.board.ModelWorked(tenant, model, e.now); shut {
			e.breakerChanged(breaker)
		}
	case failure != nil && outcome == models.AttemptFailed && route.ProviderFailure(failure.Class):
		if breaker, opened := e.board.ModelFailed(tenant, model, failure.Class, e.now); opened {
			e.breakerChanged(breaker)
		}
	case failure != nil && failure.Class == "quality_too_low" && said.Quality == nil:
		none := 0.0
		said.Quality = &none
	}
	if said.Quality != nil {
		e.judged(tenant, typ, model, *said.Quality, nil)
	}
}

func (e *Engine) breakerChanged(row models.ModelBreaker) {
	e.b.options = nil
	replace(&e.b.plan.Models.Breakers, row, func(b models.ModelBreaker) bool { return b.Tenant == row.Tenant && b.Model == row.Model })
}

// judged notes how good a result of a model was.
func (e *Engine) judged(tenant int32, typ, model string, score float64, before *float64) {
	if model != "" {
		e.taught.Judge(tenant, typ, model, score, before)
		e.b.options = nil
	}
}

// RouteAsk asks which model a task would get.
type RouteAsk struct {
	Tenant int32            `json:"tenant,omitempty"` // 0: of the platform's
	Env    int32            `json:"env,omitempty"`
	Type   string           `json:"type"`
	Lane   string           `json:"lane,omitempty"`
	Tokens int64            `json:"tokens,omitempty"`
	Named  string           `json:"named,omitempty"`
	Ask    *models.ModelAsk `json:"ask,omitempty"`
}

// Routed answers it.
type Routed struct {
	Chosen  string               `json:"chosen,omitempty"` // empty: none fits
	Reason  string               `json:"reason"`
	Ranking []models.RankedModel `json:"ranking"`
}

// routed says which model a task would get, changing nothing.
func (e *Engine) routed(a *RouteAsk) (*Routed, error) {
	kind := models.Batch
	if a.Env != 0 {
		lane, err := e.route(a.Env, a.Lane, a.Type, "body")
		if err != nil {
			return nil, err
		}
		kind = lane.Kind
	}
	of := optionsFor{a.Tenant, a.Type, kind == models.Batch}
	if a.Named == "" {
		ask := route.Ask{Type: a.Type, Tokens: a.Tokens}
		if a.Ask != nil {
			ask.ModelAsk = *a.Ask
		}
		got := e.choose(of, &ask, e.options(of))
		return &Routed{Chosen: got.name, Reason: got.reason, Ranking: got.ranking}, nil
	}
	out := &Routed{Chosen: a.Named, Reason: "requested by name"}
	for _, o := range e.options(of) {
		if o.Model.Name == a.Named {
			micro, _ := e.priceOn(a.Tenant, a.Type, a.Named, a.Tokens, kind)
			out.Ranking = append(out.Ranking, models.RankedModel{Model: a.Named, CostMicro: micro, QualityLow: o.Low, Why: out.Reason})
		}
	}
	return out, nil
}
