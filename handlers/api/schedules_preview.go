package api

import (
	"strings"
	"time"

	"github.com/gofiber/fiber/v2"

	"nightshift/handlers"
	"nightshift/models"
	"nightshift/scheduler/calendar"
)

const (
	leastInterval = time.Second // the shortest interval of a schedule
	mostPreview   = 1000
	presetPreview = 10
)

type previewRequest struct {
	Kind         handlers.Opt[string] `json:"kind" enum:"cron,interval" doc:"cron when left out"`
	Expression   handlers.Opt[string] `json:"expression" doc:"five fields, six with seconds first, or a macro"`
	EverySeconds handlers.Opt[int64]  `json:"every_seconds" doc:"of an interval, counted from from"`
	Timezone     handlers.Opt[string] `json:"timezone" doc:"UTC when left out"`
	Gap          handlers.Opt[string] `json:"dst_gap" enum:"shift,skip" doc:"shift when left out"`
	Overlap      handlers.Opt[string] `json:"dst_overlap" enum:"first,second,both" doc:"first when left out"`
	Count        handlers.Opt[int64]  `json:"count" minimum:"1" maximum:"1000" doc:"10 when left out"`
	From         handlers.Opt[string] `json:"from" doc:"now when left out; what is listed lies strictly after it"`
}

type previewRow struct {
	At    handlers.Time `json:"at"`
	Local string        `json:"local" doc:"as the schedule's own clock shows it, with its offset"`
	Note  *string       `json:"note" enum:"dst_gap,dst_overlap" doc:"a change of the clock had a part in it"`
}

type previewAnswer struct {
	Next  []previewRow `json:"next"`
	Words string       `json:"words" doc:"the rule in words"`
}

// previewSchedule lists what a rule would do; it keeps nothing.
func previewSchedule(d *handlers.Deps, c *fiber.Ctx) error {
	var ask previewRequest
	if err := handlers.NoQuery(c); err != nil {
		return err
	}
	if err := handlers.Bind(c, &ask); err != nil {
		return err
	}
	from, err := ask.check(d.Now())
	if err != nil {
		return err
	}
	policy := calendar.Policy{Gap: calendar.Gap(ask.Gap.Or("")), Overlap: calendar.Overlap(ask.Overlap.Or(""))}
	rule, err := ask.rule(from)
	if err == nil {
		err = policy.Check()
	}
	if err == nil {
		err = rule.Check(from, policy, leastInterval)
	}
	if err != nil {
		return refusedSchedule(err)
	}
	out := previewAnswer{Next: []previewRow{}, Words: rule.Words()}
	for _, o := range calendar.Preview(rule, policy, from, int(ask.Count.Or(presetPreview))) {
		out.Next = append(out.Next, previewRow{At: handlers.Time(models.InstantOf(o.At)), Local: o.Local(), Note: handlers.Null(string(o.Note))})
	}
	return handlers.Answer(c, fiber.StatusOK, out)
}

// check reads the beginning and refuses what no rule can be made of.
func (ask *previewRequest) check(now models.Instant) (time.Time, error) {
	var k handlers.Check
	kind := ask.Kind.Or("cron")
	if !ask.Kind.Given && !ask.Expression.Given && ask.EverySeconds.Given {
		kind = "interval"
	}
	ask.Kind = handlers.Opt[string]{Given: true, Value: kind}
	switch kind {
	case "cron":
		k.That(ask.Expression.Given && !ask.Expression.Null, "body.expression", "it is needed")
		k.That(!ask.EverySeconds.Given || ask.EverySeconds.Null, "body.every_seconds", "it is of kind interval")
	case "interval":
		k.That(ask.EverySeconds.Given && !ask.EverySeconds.Null, "body.every_seconds", "it is needed")
		k.That(!ask.Expression.Given || ask.Expression.Null, "body.expression", "it is of kind cron")
	default:
		k.Fail("body.kind", "%q is none of cron, interval", handlers.Shorten(kind, 60))
	}
	handlers.Range(&k, "body.count", ask.Count.Or(presetPreview), 1, mostPreview)
	if text := ask.From.Or(""); ask.From.Given && !ask.From.Null {
		at, err := handlers.ParseTime("body.from", text)
		if err != nil {
			return time.Time{}, err
		}
		now = at
	}
	return now.Time(), k.Err()
}

func (ask *previewRequest) rule(from time.Time) (*calendar.Rule, error) {
	if ask.Kind.Value == "cron" {
		return calendar.Parse(ask.Expression.Value, ask.Timezone.Or("UTC"))
	}
	return calendar.Every(from, secondsOf(ask.EverySeconds.Value), ask.Timezone.Or("UTC"))
}

// secondsOf is a span that a number of seconds makes; what would not fit is as long as can be.
func secondsOf(n int64) time.Duration {
	const most = int64(1<<63-1) / int64(time.Second)
	return time.Duration(min(max(n, -most), most)) * time.Second
}

// scheduleFields are the members that a calendar's refusal begins with.
var scheduleFields = []string{
	"expression", "timezone", "every_seconds", "run_at", "dst_gap", "dst_overlap", "misfire_policy", "misfire_grace_seconds",
	"catch_up_limit", "expires_in_seconds", "overlap_policy", "calendar_exclude",
}

// refusedSchedule names the field that a calendar's refusal is about.
func refusedSchedule(err error) error {
	e, ok := err.(*models.Error) //nolint:errorlint // the calendar's own, never wrapped
	if !ok || e.Code != models.InvalidSchedule || len(e.Fields) > 0 {
		return err
	}
	name, _, _ := strings.Cut(e.Detail, " ")
	field := "every_seconds"
	for _, f := range scheduleFields {
		if f == strings.TrimSuffix(name, ":") {
			field = f
		}
	}
	e.Fields = []models.FieldError{{Location: "body." + field, Message: e.Detail}}
	return e
}
