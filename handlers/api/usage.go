package api

import (
	"slices"
	"strings"
	"time"

	"github.com/gofiber/fiber/v2"

	"nightshift/handlers"
	"nightshift/models"
	"nightshift/models/postgres"
)

// UsageView is what attempts used that ended in the time that was asked for. Members that it was not grouped by are left out.
type UsageView struct {
	Day       *string `json:"day,omitempty" doc:"in UTC"`
	Model     *string `json:"model,omitempty" doc:"empty: none was named"`
	Type      *string `json:"type,omitempty"`
	Lane      *string `json:"lane,omitempty" doc:"empty: it is not there any more"`
	Tasks     int64   `json:"tasks"`
	TokensIn  int64   `json:"tokens_in"`
	TokensOut int64   `json:"tokens_out"`
	CostUSD   float64 `json:"cost_usd"`
}

// UsageAnswer has a row a group.
type UsageAnswer struct {
	Data []UsageView `json:"data"`
}

// usageSpan is how long a time is summed up where none is named, in seconds.
const usageSpan = 30 * 86_400

func (w *Work) usageRoutes() []handlers.Route {
	return tenantRoutes(handlers.Route{Method: "GET", Path: "/v1/usage", Scopes: []string{handlers.UsageRead}, Handler: w.usage, Doc: handlers.Doc{
		Tag: "Budgets", Summary: "What the environment's attempts used", Detail: "By when they ended; the last 30 days and by day where nothing is said.",
		Query: []handlers.Param{
			{Name: "from", Type: "string", About: "the first moment, or the first day (of UTC)"},
			{Name: "to", Type: "string", About: "the moment after the last, or the last day"},
			{Name: "group_by", Type: "string", About: "of day, model, type, lane; several with commas"},
		},
		Replies: map[int]any{200: UsageAnswer{}},
	}})
}

func readUsage(d *handlers.Deps, c *fiber.Ctx) (ask postgres.UsageAsk, err error) {
	values, err := handlers.ReadQuery(c, "=from", "=to", "group_by")
	if err != nil {
		return ask, err
	}
	ask.To = d.Now()
	for name, at := range map[string]*models.Instant{"from": &ask.From, "to": &ask.To} { // any order: each on its own
		if sent := values[name]; len(sent) > 0 {
			if *at, err = usageMoment(name, sent[0]); err != nil {
				return ask, err
			}
		}
	}
	if len(values["from"]) == 0 {
		ask.From = ask.To.Add(-models.Seconds(usageSpan))
	}
	by, given := values["group_by"]
	if !given {
		by = []string{"day"}
	}
	var k handlers.Check
	k.That(ask.From < ask.To, "query.from", "it must be before to")
	for _, name := range by {
		k.OneOf("query.group_by", name, "day", "model", "type", "lane")
	}
	ask.Day, ask.Model = slices.Contains(by, "day"), slices.Contains(by, "model")
	ask.Type, ask.Lane = slices.Contains(by, "type"), slices.Contains(by, "lane")
	return ask, k.Err()
}

// usageMoment reads where a time begins or ends: a moment, or a day, all of which counts.
func usageMoment(name, text string) (models.Instant, error) {
	day, err := time.Parse(time.DateOnly, text)
	if err != nil {
		return handlers.ParseTime("query."+name, strings.ReplaceAll(text, " ", "+")) // a plus that nobody escaped
	}
	if name == "to" {
		day = day.AddDate(0, 0, 1)
	}
	return handlers.ParseTime("query."+name, day.Format(time.RFC3339))
}

func (w *Work) usage(d *handlers.Deps, c *fiber.Ctx) error {
	ask, err := readUsage(d, c)
	if err != nil {
		return err
	}
	caller := handlers.CallerOf(c)
	sums, err := w.Reads.Usage(c.UserContext(), caller.Scope(), caller.Env, ask)
	if err != nil {
		return err
	}
	answer := UsageAnswer{Data: []UsageView{}}
	for i := range sums {
		u := &sums[i]
		if u.Tasks == 0 {
			continue // the sum of nothing
		}
		v := UsageView{Tasks: u.Tasks, TokensIn: u.TokensIn, TokensOut: u.TokensOut, CostUSD: u.CostUSD}
		for _, g := range []struct {
			on   bool
			from string
			to   **string
		}{{ask.Day, u.Day, &v.Day}, {ask.Model, u.Model, &v.Model}, {ask.Type, u.Type, &v.Type}, {ask.Lane, u.Lane, &v.Lane}} {
			if g.on {
				*g.to = &g.from
			}
		}
		answer.Data = append(answer.Data, v)
	}
	return handlers.Answer(c, fiber.StatusOK, answer)
}
