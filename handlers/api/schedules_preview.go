package api

import (
	"cmp"
	"slices"
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
	sincePreview  = 1900 // what is before lies on no clock that a zone tells of
)

type previewRequest struct {
	Kind         handlers.Opt[string]        `json:"kind" enum:"cron,interval,once,event,drain" doc:"cron when left out"`
	Expression   handlers.Opt[string]        `json:"expression" doc:"five fields, six with seconds first, or a macro"`
	EverySeconds handlers.Opt[int64]         `json:"every_seconds" doc:"of an interval, counted from from"`
	RunAt        handlers.Opt[string]        `json:"run_at" doc:"of once"`
	Event        handlers.Opt[EventRuleView] `json:"event" doc:"of event: it follows no clock, so that nothing is listed; words say when it runs"`
	Drain        handlers.Opt[DrainRuleView] `json:"drain" doc:"of drain, likewise"`
	Timezone     handlers.Opt[string]        `json:"timezone" doc:"UTC when left out"`
	Gap          handlers.Opt[string]        `json:"dst_gap" enum:"shift,skip" doc:"shift when left out"`
	Overlap      handlers.Opt[string]        `json:"dst_overlap" enum:"first,second,both" doc:"first when left out"`
	Count        handlers.Opt[int64]         `json:"count" minimum:"1" maximum:"1000" doc:"10 when left out"`
	From         handlers.Opt[string]        `json:"from" doc:"now when left out; what is listed lies strictly after it"`
}

type previewRow struct {
	At    time.Time `json:"at"`
	Local string    `json:"local" doc:"as the schedule's own clock shows it, with its offset"`
	Note  *string   `json:"note" enum:"dst_gap,dst_overlap" doc:"a change of the clock had a part in it"`
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
	gathers := ask.gathers()
	if err == nil && gathers == nil {
		err = rule.Check(from, policy, leastInterval)
	}
	if err != nil {
		return refusedSchedule(err)
	}
	if gathers != nil {
		return handlers.Answer(c, fiber.StatusOK, previewAnswer{Next: []previewRow{}, Words: calendar.GatherWords(gathers)})
	}
	out := previewAnswer{Next: []previewRow{}, Words: rule.Words()}
	for _, o := range calendar.Preview(rule, policy, from, int(ask.Count.Or(presetPreview))) {
		out.Next = append(out.Next, viewOccurrence(o))
	}
	return handlers.Answer(c, fiber.StatusOK, out)
}

func viewOccurrence(o calendar.Occurrence) previewRow {
	return previewRow{At: o.At.Truncate(time.Microsecond).UTC(), Local: o.Local(), Note: handlers.Null(string(o.Note))}
}

// check reads the beginning and refuses what no rule can be made of.
func (ask *previewRequest) check(now models.Instant) (time.Time, error) {
	var k handlers.Check
	kind := ask.Kind.Or("cron")
	if !ask.Kind.Given && !ask.Expression.Given && ask.EverySeconds.Given {
		kind = "interval"
	}
	ask.Kind = handlers.Opt[string]{Given: true, Value: kind}
	if !slices.Contains(scheduleKinds, kind) {
		k.Fail("body.kind", "%q is none of %s", handlers.Shorten(kind, 60), strings.Join(scheduleKinds, ", "))
		return time.Time{}, k.Err()
	}
	for _, of := range []struct {
		kind, field string
		given       bool
	}{
		{"cron", "expression", given(ask.Expression)},
		{"interval", "every_seconds", given(ask.EverySeconds)},
		{"once", "run_at", given(ask.RunAt)},
		{"event", "event", given(ask.Event)},
		{"drain", "drain", given(ask.Drain)},
	} {
		k.That(of.given || of.kind != kind, "body."+of.field, "it is needed by kind %s", kind)
		k.That(!of.given || of.kind == kind, "body."+of.field, "it is of kind %s", of.kind)
	}
	ask.Event.Value.check(&k, kind == "event")
	ask.Drain.Value.check(&k, kind == "drain")
	handlers.Range(&k, "body.count", ask.Count.Or(presetPreview), 1, mostPreview)
	if text := ask.From.Or(""); ask.From.Given && !ask.From.Null {
		at, err := handlers.ParseMoment("body.from", text, sincePreview)
		if err != nil {
			return time.Time{}, err
		}
		return at, k.Err()
	}
	return now.Time(), k.Err()
}

func given[T any](o handlers.Opt[T]) bool { return o.Given && !o.Null }

// rule is nothing's where the kind follows no clock, but its zone is judged all the same.
func (ask *previewRequest) rule(from time.Time) (*calendar.Rule, error) {
	zone := ask.Timezone.Or("UTC")
	switch ask.Kind.Value {
	case "cron":
		return calendar.Parse(ask.Expression.Value, zone)
	case "interval":
		return calendar.Every(from, secondsOf(ask.EverySeconds.Value), zone)
	case "once":
		at, err := handlers.ParseTime("body.run_at", ask.RunAt.Value)
		if err != nil {
			return nil, err
		}
		return calendar.Once(at.Time(), zone)
	}
	return calendar.Once(from, zone)
}

// gathers is the rule of a kind that follows no clock, nil of another.
func (ask *previewRequest) gathers() *models.ScheduleRule {
	switch r := (&models.ScheduleRule{Kind: ask.Kind.Value}); r.Kind {
	case "event":
		v := &ask.Event.Value
		r.Event = &models.EventRule{Name: v.Name, DebounceSeconds: v.Debounce, MaxWaitSeconds: orNought(v.MaxWait), MaxEvents: orNought(v.MaxCount)}
		return r
	case "drain":
		v := &ask.Drain.Value
		r.Drain = &models.DrainRule{Queue: v.Queue, MaxItems: cmp.Or(v.MaxItems, presetItems), BatchSize: cmp.Or(v.BatchSize, presetBatch)}
		return r
	}
	return nil
}

func orNought[T any](v *T) (n T) {
	if v != nil {
		n = *v
	}
	return n
}

func (v *EventRuleView) check(k *handlers.Check, given bool) {
	if !given {
		return
	}
	k.That(handlers.IsName(v.Name), "body.event.name", "must match ^[a-z0-9][a-z0-9._:-]{0,127}$")
	handlers.Range(k, "body.event.debounce_seconds", v.Debounce, 0, mostDebounce)
	handlers.Range(k, "body.event.max_wait_seconds", orNought(v.MaxWait), 0, mostWait)
	if v.MaxCount != nil {
		handlers.Range(k, "body.event.max_events", *v.MaxCount, 1, mostEvents)
	}
}

func (v *DrainRuleView) check(k *handlers.Check, given bool) {
	if !given {
		return
	}
	k.That(handlers.IsName(v.Queue), "body.drain.queue", "must match ^[a-z0-9][a-z0-9._:-]{0,127}$")
	handlers.Range(k, "body.drain.max_items", cmp.Or(v.MaxItems, presetItems), 1, mostItems)
	handlers.Range(k, "body.drain.batch_size", cmp.Or(v.BatchSize, presetBatch), 1, mostBatch)
}

// secondsOf is a span that a number of seconds makes; what would not fit is as long as can be.
func secondsOf(n int64) time.Duration {
	const most = int64(1<<63-1) / int64(time.Second)
	return time.Duration(min(max(n, -most), most)) * time.Second
}

// scheduleFields are the members that a calendar's refusal begins with.
var scheduleFields = []string{
	"expression", "timezone", "every_seconds", "run_at", "dst_gap", "dst_overlap", "misfire_policy", "misfire_grace_seconds",
	"catch_up_limit", "expires_in_seconds", "overlap_policy", "calendar_exclude", "start_at", "end_at",
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
