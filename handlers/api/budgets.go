package api

import (
	"cmp"
	"math"
	"net/url"
	"slices"
	"strings"

	"github.com/gofiber/fiber/v2"

	"nightshift/handlers"
	"nightshift/models"
	"nightshift/scheduler/calendar"
	"nightshift/scheduler/engine"
)

// BudgetFigures is a budget of money or tokens with what is left of it.
type BudgetFigures struct {
	ID          string    `json:"id"`
	Scope       string    `json:"scope" enum:"tenant,environment,type,model"`
	Name        *string   `json:"name" doc:"of the environment, type or model; null for the tenant"`
	Period      string    `json:"period" enum:"day,month,total"`
	Timezone    string    `json:"timezone" doc:"in which days and months begin"`
	LimitUSD    *float64  `json:"limit_usd"`
	LimitTokens *int64    `json:"limit_tokens"`
	OnExhausted string    `json:"on_exhausted" enum:"reject,hold,downgrade"`
	AlertAt     []float64 `json:"alert_at"`

	SpentUSD        float64       `json:"spent_usd" doc:"in this period: what attempts reported, and what lost ones were expected to cost until they report it"`
	SpentTokens     int64         `json:"spent_tokens"`
	ReservedUSD     float64       `json:"reserved_usd" doc:"that running attempts are expected to cost"`
	ReservedTokens  int64         `json:"reserved_tokens"`
	RemainingUSD    *float64      `json:"remaining_usd" doc:"null without a limit"`
	RemainingTokens *int64        `json:"remaining_tokens"`
	ResetsAt        handlers.Time `json:"resets_at" doc:"when it begins anew; null in total"`
	Waiting         int64         `json:"waiting" doc:"tasks that it holds"`
	CreatedAt       handlers.Time `json:"created_at"`
	UpdatedAt       handlers.Time `json:"updated_at"`
	Version         int64         `json:"version"`
}

type budgetDry struct {
	BudgetFigures
	ID       *string       `json:"id" doc:"of the one that it would replace, else null"`
	Refusals []RefusalView `json:"refusals"`
}

// BudgetAsk is what is asked of a budget.
type BudgetAsk struct {
	Scope       handlers.Opt[string]    `json:"scope" required:"true" enum:"tenant,environment,type,model"`
	Name        handlers.Opt[string]    `json:"name" doc:"of the environment (left out: the caller's), the type or the model"`
	Period      handlers.Opt[string]    `json:"period" required:"true" enum:"day,month,total"`
	Timezone    handlers.Opt[string]    `json:"timezone" doc:"in which days and months begin; left out: the tenant's"`
	LimitUSD    handlers.Opt[float64]   `json:"limit_usd" doc:"one of the two limits is needed"`
	LimitTokens handlers.Opt[int64]     `json:"limit_tokens"`
	OnExhausted handlers.Opt[string]    `json:"on_exhausted" enum:"reject,hold,downgrade" doc:"hold: what is not covered waits; reject: it is refused when it is submitted; downgrade: of a task whose model is chosen the cheapest is taken that it may have and that is covered, everything else waits. Left out: hold"`
	AlertAt     handlers.Opt[[]float64] `json:"alert_at" doc:"parts of the limit at which budget.alert is told, once a period; left out: 0.8 and 1"`
}

const (
	mostDollars = 1_000_000_000
	mostAlerts  = 10
	mostAlert   = 100.0
)

func budgetRoutes() []handlers.Route {
	const tag = "Budgets"
	made := dryable(endpoint(post, "/v1/budgets", writes, true, tag, "Make a budget, or replace the one of its scope, name and period", createBudget, BudgetAsk{}, 201, BudgetFigures{}), nil)
	made.Doc.Replies[fiber.StatusOK] = budgetDry{}
	made.Doc.Detail = "201 when it was made, 200 when it replaced another or was only tried. What was spent of the one it replaces stays spent."
	put := endpoint(fiber.MethodPut, "/v1/budgets/:id", writes, true, tag, "Set the limits of a budget anew", putBudget, BudgetAsk{}, 200, BudgetFigures{})
	put.Doc.Detail = "Its scope, name and period stay as they are. A raised limit frees what waits at once."
	return []handlers.Route{
		made, put,
		listed(endpoint(get, "/v1/budgets", reads, true, tag, "List the tenant's budgets", listBudgets, nil, 200, handlers.Page[BudgetFigures]{})),
		endpoint(get, "/v1/budgets/:id", reads, true, tag, "Read a budget and what is left of it, live", getBudget, nil, 200, BudgetFigures{}),
		endpoint(remove, "/v1/budgets/:id", writes, true, tag, "Lift a budget; what waits for it goes on", deleteBudget, nil, 204, nil),
	}
}

// sum reads an amount of dollars in millionths. What is less than one of them, and not nothing, is refused: it would count as nothing.
func sum(k *handlers.Check, at string, usd, most float64) int64 {
	k.That(usd == 0 || usd >= 0.000001 && usd <= most, at, "it must be 0, or from 0.000001 to %v", int64(most))
	return int64(math.Round(usd * 1e6))
}

func dollars(micro int64) float64 { return float64(micro) / 1e6 }

func showBudget(f engine.BudgetFigures) BudgetFigures {
	g := &f.Budget
	v := BudgetFigures{
		ID: g.ID.Text(models.BudgetPrefix), Scope: g.Scope.String(), Name: handlers.Null(g.Name), Period: g.Period.String(), Timezone: cmp.Or(g.Timezone, "UTC"), LimitTokens: g.LimitTokens,
		OnExhausted: g.OnExhausted.String(), AlertAt: handlers.List(g.AlertAt),
		SpentUSD: dollars(max(0, f.Spent.Micro)), SpentTokens: max(0, f.Spent.Tokens), ReservedUSD: dollars(f.Reserved.Micro), ReservedTokens: f.Reserved.Tokens,
		Waiting: f.Waiting, CreatedAt: handlers.Time(g.CreatedAt), UpdatedAt: handlers.Time(g.UpdatedAt), Version: g.Version,
	}
	if g.Scope == models.EnvironmentScope {
		v.Name = handlers.Null(f.Environment)
	}
	if g.LimitMicro != nil {
		limit, left := dollars(*g.LimitMicro), dollars(max(0, *g.LimitMicro-max(0, f.Spent.Micro)-f.Reserved.Micro))
		v.LimitUSD, v.RemainingUSD = &limit, &left
	}
	if g.LimitTokens != nil {
		left := max(0, *g.LimitTokens-max(0, f.Spent.Tokens)-f.Reserved.Tokens)
		v.RemainingTokens = &left
	}
	if f.Until < models.Forever {
		v.ResetsAt = handlers.Time(f.Until)
	}
	return v
}

// looked asks the brain for the tenant's budgets, or one of them.
func lookedBudgets(d *handlers.Deps, c *fiber.Ctx, id models.ID) ([]engine.BudgetFigures, error) {
	answer, err := ask(d, c, func(cmd *engine.Command) {
		cmd.Look = &engine.Look{Budgets: &engine.BudgetRef{Tenant: handlers.CallerOf(c).Tenant, ID: id}}
	})
	if err != nil {
		return nil, err
	}
	return answer.Looked.Budgets, nil
}

func budgetNamed(d *handlers.Deps, c *fiber.Ctx) (engine.BudgetFigures, error) {
	text, err := handlers.PathParam(c, "id")
	if err != nil {
		return engine.BudgetFigures{}, err
	}
	id, err := models.ParseID(models.BudgetPrefix, text)
	if err != nil {
		return engine.BudgetFigures{}, models.Errorf(models.NotFound, "there is no budget %s", handlers.Shorten(text, 60))
	}
	found, err := lookedBudgets(d, c, id)
	if err != nil {
		return engine.BudgetFigures{}, err
	}
	return found[0], nil
}

func getBudget(d *handlers.Deps, c *fiber.Ctx) error {
	f, err := budgetNamed(d, c)
	if err != nil {
		return err
	}
	handlers.SetETag(c, f.Budget.Version)
	return handlers.Answer(c, fiber.StatusOK, showBudget(f))
}

func listBudgets(d *handlers.Deps, c *fiber.Ctx) error {
	q, ids, err := idList(d, c)
	if err != nil {
		return err
	}
	all, err := lookedBudgets(d, c, models.ID{})
	if err != nil {
		return err
	}
	if ids.Desc {
		slices.Reverse(all)
	}
	rows := all[:0:0]
	for _, f := range all {
		if n := f.Budget.ID.Compare(ids.After); len(rows) < ids.Limit && (ids.After.IsZero() || n < 0 == ids.Desc && n != 0) {
			rows = append(rows, f)
		}
	}
	return answerIDs(c, q, rows, int64(len(all)), showBudget, func(f engine.BudgetFigures) models.ID { return f.Budget.ID })
}

// which reads whose spending a budget counts. Of one that stands none of it changes.
func (in *BudgetAsk) which(d *handlers.Deps, c *fiber.Ctx, k *handlers.Check, g *models.Budget) error {
	var ok bool
	if g.Scope, ok = models.ParseScope(in.Scope.Value); !ok {
		k.OneOf("body.scope", in.Scope.Value, "tenant", "environment", "type", "model")
	}
	if g.Period, ok = models.ParsePeriod(in.Period.Value); !ok {
		k.OneOf("body.period", in.Period.Value, "day", "month", "total")
	}
	caller, named := handlers.CallerOf(c), in.Name.Given && !in.Name.Null
	switch {
	case !k.OK():
	case g.Scope == models.TenantScope:
		k.That(!named, "body.name", "a budget of the tenant has no name")
	case g.Scope == models.EnvironmentScope:
		name := in.Name.Or(caller.Environment)
		env, err := d.World.Environment(c.UserContext(), caller.Tenant, name)
		switch {
		case models.CodeOf(err) == models.NotFound:
			k.Fail("body.name", "there is no environment %q", handlers.Shorten(name, 60))
		case err != nil:
			return err
		case len(caller.Environments) > 0 && !slices.Contains(caller.Environments, env.Name):
			return models.Errorf(models.Forbidden, "the key is good for %s alone", strings.Join(caller.Environments, ", "))
		}
		g.Env = env.Env
	case !named:
		k.Fail("body.name", "it is needed: the name of the %s", g.Scope)
	default:
		g.Name = in.Name.Value
		k.Name("body.name", g.Name)
	}
	return nil
}

// terms reads what a budget allows.
func (in *BudgetAsk) terms(k *handlers.Check, g *models.Budget, zone string) {
	g.Timezone = in.Timezone.Or(zone)
	if _, err := calendar.Zone(g.Timezone); g.Timezone == "" {
		k.Fail("body.timezone", "it is no zone: leave it out for the tenant's, or name one such as \"UTC\"")
	} else if err != nil {
		_, why, _ := strings.Cut(err.Error(), ": ")
		k.Fail("body.timezone", "%s", why)
	}
	g.LimitMicro, g.LimitTokens = nil, nil
	if in.LimitUSD.Given && !in.LimitUSD.Null {
		micro := sum(k, "body.limit_usd", in.LimitUSD.Value, mostDollars)
		g.LimitMicro = &micro
	}
	if in.LimitTokens.Given && !in.LimitTokens.Null {
		handlers.Range(k, "body.limit_tokens", in.LimitTokens.Value, 0, maxTokensMost)
		tokens := in.LimitTokens.Value
		g.LimitTokens = &tokens
	}
	k.That(g.LimitMicro != nil || g.LimitTokens != nil, "body.limit_usd", "a limit is needed: limit_usd, limit_tokens or both")
	action, ok := models.ParseOnExhausted(in.OnExhausted.Or(models.HoldTask.String()))
	if g.OnExhausted = action; !ok {
		k.OneOf("body.on_exhausted", in.OnExhausted.Value, "reject", "hold", "downgrade")
	}
	g.AlertAt = slices.Clone(in.AlertAt.Or([]float64{0.8, 1}))
	k.That(len(g.AlertAt) <= mostAlerts, "body.alert_at", "at most %d thresholds", mostAlerts)
	for i, t := range g.AlertAt[:min(len(g.AlertAt), mostAlerts)] {
		k.That(t > 0 && t <= mostAlert, "body.alert_at["+itoa(i)+"]", "a part of the limit, above 0 and at most %v", mostAlert)
	}
	slices.Sort(g.AlertAt)
	g.AlertAt = slices.Compact(g.AlertAt)
}

func createBudget(d *handlers.Deps, c *fiber.Ctx) error {
	var in BudgetAsk
	dry, err := handlers.DryRun(c)
	if err != nil {
		return err
	}
	if err := handlers.Bind(c, &in); err != nil {
		return err
	}
	caller := handlers.CallerOf(c)
	tenant, err := d.World.TenantByNumber(c.UserContext(), caller.Tenant)
	if err != nil {
		return err
	}
	row := models.Budget{ID: d.Mint(), Tenant: caller.Tenant}
	var k handlers.Check
	if err := in.which(d, c, &k, &row); err != nil {
		return err
	}
	in.terms(&k, &row, tenant.Timezone)
	if err := k.Err(); err != nil {
		return err
	}
	set := &engine.SetBudget{Budget: row, Env: caller.Env}
	if dry {
		return tryBudget(d, c, set)
	}
	return handlers.Create(d, c, func(once *engine.Once) (*handlers.Made, error) {
		answer, err := configure(d, c, &engine.Configure{Budget: set, New: true, Once: once, Action: "budget.put"})
		if err != nil {
			return nil, err
		}
		if answer.Replay {
			return &handlers.Made{Replay: true, Again: func() (*handlers.Made, error) {
				known, err := lookedBudgets(d, c, answer.Made[0])
				if err != nil {
					return nil, err
				}
				return madeBudget(&known[0], fiber.StatusCreated), nil
			}}, nil
		}
		if answer.Budget.Made {
			return madeBudget(answer.Budget, fiber.StatusCreated), nil
		}
		return madeBudget(answer.Budget, fiber.StatusOK), nil
	})
}

func madeBudget(f *engine.BudgetFigures, status int) *handlers.Made {
	v := showBudget(*f)
	return &handlers.Made{Status: status, Location: "/v1/budgets/" + url.PathEscape(v.ID), Body: v}
}

// tryBudget answers what a budget would look like; one that would be made has no id yet.
func tryBudget(d *handlers.Deps, c *fiber.Ctx, set *engine.SetBudget) error {
	answer, err := configure(d, c, &engine.Configure{Budget: set, New: true, Dry: true, Action: "budget.put"})
	refusals, err := refusalsOf(err)
	if err != nil {
		return err
	}
	f := &engine.BudgetFigures{Budget: set.Budget, Made: true, Until: models.Forever}
	if answer != nil {
		f = answer.Budget
	}
	v := budgetDry{BudgetFigures: showBudget(*f), Refusals: refusals}
	if !f.Made {
		v.ID = &v.BudgetFigures.ID
	}
	return handlers.Answer(c, fiber.StatusOK, v)
}

func putBudget(d *handlers.Deps, c *fiber.Ctx) error {
	var in BudgetAsk
	if err := handlers.Bind(c, &in); err != nil {
		return err
	}
	caller := handlers.CallerOf(c)
	tenant, err := d.World.TenantByNumber(c.UserContext(), caller.Tenant)
	if err != nil {
		return err
	}
	read := func() (engine.BudgetFigures, int64, error) {
		f, err := budgetNamed(d, c)
		return f, f.Budget.Version, err
	}
	answer, err := edit(d, c, read, func(f *engine.BudgetFigures) (*engine.Configure, error) {
		var k handlers.Check
		in.stays(&k, f)
		in.terms(&k, &f.Budget, tenant.Timezone)
		return &engine.Configure{Budget: &engine.SetBudget{Budget: f.Budget, Env: caller.Env}, Action: "budget.put"}, k.Err()
	})
	if err != nil {
		return err
	}
	handlers.SetETag(c, answer.Budget.Budget.Version)
	return handlers.Answer(c, fiber.StatusOK, showBudget(*answer.Budget))
}

// stays refuses what would make another budget of one that stands.
func (in *BudgetAsk) stays(k *handlers.Check, f *engine.BudgetFigures) {
	stands := showBudget(*f)
	if stands.Name == nil {
		stands.Name = new(string)
	}
	for _, m := range []struct {
		name string
		sent handlers.Opt[string]
		is   string
	}{{"scope", in.Scope, stands.Scope}, {"name", in.Name, *stands.Name}, {"period", in.Period, stands.Period}} {
		if m.sent.Given && !m.sent.Null && m.sent.Value != m.is {
			k.Fail("body."+m.name, "it stays as it is (%q): a budget of another scope, name or period is made by a POST", m.is)
		}
	}
}

func deleteBudget(d *handlers.Deps, c *fiber.Ctx) error {
	caller := handlers.CallerOf(c)
	read := func() (models.ID, int64, error) {
		f, err := budgetNamed(d, c)
		return f.Budget.ID, f.Budget.Version, err
	}
	_, err := edit(d, c, read, func(id *models.ID) (*engine.Configure, error) {
		return &engine.Configure{DeleteBudget: &engine.BudgetRef{Tenant: caller.Tenant, ID: *id}, Action: "budget.delete"}, nil
	})
	if err != nil {
		return err
	}
	return handlers.NoContent(c)
}
