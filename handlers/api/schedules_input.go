package api

import (
	"cmp"
	"math"
	"reflect"

	"github.com/gofiber/fiber/v2"

	"nightshift/handlers"
	"nightshift/handlers/body"
	"nightshift/models"
	"nightshift/scheduler/calendar"
)

// Bounds of what a schedule may say.
const (
	mostGrace    = maxDurationSeconds
	mostCatchUp  = 1000
	mostJitter   = 86_400
	mostFlexible = 86_400
	mostExcluded = 1000
)

// scheduleKinds are the kinds of schedules.
var scheduleKinds = []string{"cron", "interval", "once", "event", "drain"}

// ScheduleInput describes a schedule as it is sent; it is read member by member, not through this type.
type ScheduleInput struct {
	Name            string         `json:"name" required:"true"`
	Kind            string         `json:"kind" enum:"cron,interval,once,event,drain" required:"true"`
	Expression      string         `json:"expression" doc:"of cron: five fields, six with seconds first, or a macro"`
	Timezone        string         `json:"timezone" doc:"UTC when left out"`
	Gap             string         `json:"dst_gap" enum:"shift,skip"`
	Fold            string         `json:"dst_overlap" enum:"first,second,both"`
	EverySeconds    int64          `json:"every_seconds" doc:"of interval"`
	IntervalFrom    string         `json:"interval_from" enum:"start,end" doc:"end: from the end of the run before"`
	RunAt           handlers.Time  `json:"run_at" doc:"of once"`
	Event           EventRuleView  `json:"event" doc:"of event"`
	Drain           DrainRuleView  `json:"drain" doc:"of drain"`
	Task            TaskInput      `json:"task" doc:"this or workflow; a payload may use {{scheduled_for}}, {{run_id}}, {{partition.index}}, {{partition.count}}, {{watermark.NAME}} and {{vars.NAME}}"`
	Workflow        FlowSubmission `json:"workflow" doc:"made anew for each run"`
	Partitions      int            `json:"partitions" minimum:"1" maximum:"1000" doc:"a run makes the task, or all of the workflow, so many times, as one workflow of at most 1,000 tasks. Of kind event each gets all events; of kind drain the items are shared out over at most so many"`
	Misfire         string         `json:"misfire_policy" enum:"skip,run_once,catch_up"`
	Grace           int64          `json:"misfire_grace_seconds" doc:"60 when left out; an occurrence later than that is missed"`
	CatchUp         int64          `json:"catch_up_limit" doc:"100 when left out: the newest so many of the missed ones run"`
	Overlap         string         `json:"overlap_policy" enum:"skip,queue_one,allow,cancel_previous"`
	ExpiresIn       int64          `json:"expires_in_seconds" doc:"now, or not at all: its work never starts later than that"`
	Flexible        int64          `json:"flexible_seconds" doc:"its work may start up to so much later: where in that time its pool is foreseen to be quietest"`
	CompleteWithin  int64          `json:"complete_within_seconds" doc:"a run that has not ended so long after its moment, or did not come to be, is told as schedule.late"`
	Jitter          int64          `json:"jitter_seconds" doc:"its work starts up to so much later, the same for an occurrence each time"`
	MostFailures    int32          `json:"max_failures_in_a_row" doc:"then it pauses"`
	Enabled         bool           `json:"enabled" doc:"true when left out"`
	StartAt         handlers.Time  `json:"start_at"`
	EndAt           handlers.Time  `json:"end_at"`
	CalendarExclude []string       `json:"calendar_exclude" doc:"dates of its own clock on which nothing runs"`
	Description     string         `json:"description"`
	Owner           string         `json:"owner"`
	RunbookURL      string         `json:"runbook_url"`
}

// plain is a rule of which only the defaults are said.
func plain() models.ScheduleRule {
	return models.ScheduleRule{Timezone: "UTC", Gap: "shift", Fold: "first", Misfire: "run_once", GraceSeconds: 60, CatchUp: 100, Overlap: "skip"}
}

// scheduleDraft is a schedule while its members are read over what stands.
type scheduleDraft struct {
	row     *models.Schedule
	rule    *models.ScheduleRule
	preset  models.ScheduleRule
	enabled *bool
	tasks   *taskReader
	problem *body.Problems
	given   []string // task, workflow
	denied  error    // a lane that the caller's key does not submit to
	unsound error    // a graph that is none
}

// word reads one of some words, null for the preset.
func word(into func(*models.ScheduleRule) *string, words ...string) func(*scheduleDraft, body.Value) {
	return func(d *scheduleDraft, v body.Value) {
		if *into(d.rule) = *into(&d.preset); !v.Null() {
			*into(d.rule) = v.OneOf(words...)
		}
	}
}

// free reads a text that the calendar or nobody judges.
func free(into func(*models.ScheduleRule) *string, most int) func(*scheduleDraft, body.Value) {
	return func(d *scheduleDraft, v body.Value) {
		if *into(d.rule) = *into(&d.preset); !v.Null() {
			*into(d.rule) = v.String(0, most)
		}
	}
}

func whole(into func(*models.ScheduleRule) *int64, least, most int64) func(*scheduleDraft, body.Value) {
	return func(d *scheduleDraft, v body.Value) {
		if *into(d.rule) = *into(&d.preset); !v.Null() {
			*into(d.rule) = v.Int(least, most)
		}
	}
}

func when(into func(*models.ScheduleRule) *models.Instant) func(*scheduleDraft, body.Value) {
	return func(d *scheduleDraft, v body.Value) {
		if *into(d.rule) = 0; !v.Null() {
			*into(d.rule) = v.Time()
		}
	}
}

// scheduleMembers say how each member of a schedule is read.
var scheduleMembers = map[string]func(*scheduleDraft, body.Value){
	"event":                   (*scheduleDraft).event,
	"drain":                   (*scheduleDraft).drain,
	"name":                    func(d *scheduleDraft, v body.Value) { d.row.Name = v.Name() },
	"kind":                    (*scheduleDraft).kind,
	"expression":              free(func(r *models.ScheduleRule) *string { return &r.Expression }, 1000),
	"timezone":                (*scheduleDraft).timezone,
	"dst_gap":                 word(func(r *models.ScheduleRule) *string { return &r.Gap }, "shift", "skip"),
	"dst_overlap":             word(func(r *models.ScheduleRule) *string { return &r.Fold }, "first", "second", "both"),
	"every_seconds":           whole(func(r *models.ScheduleRule) *int64 { return &r.EverySeconds }, math.MinInt64, math.MaxInt64),
	"interval_from":           (*scheduleDraft).intervalFrom,
	"run_at":                  when(func(r *models.ScheduleRule) *models.Instant { return &r.RunAt }),
	"task":                    (*scheduleDraft).task,
	"workflow":                (*scheduleDraft).workflow,
	"partitions":              (*scheduleDraft).partitions,
	"misfire_policy":          word(func(r *models.ScheduleRule) *string { return &r.Misfire }, "skip", "run_once", "catch_up"),
	"misfire_grace_seconds":   whole(func(r *models.ScheduleRule) *int64 { return &r.GraceSeconds }, 0, mostGrace),
	"catch_up_limit":          whole(func(r *models.ScheduleRule) *int64 { return &r.CatchUp }, 0, mostCatchUp),
	"overlap_policy":          word(func(r *models.ScheduleRule) *string { return &r.Overlap }, "skip", "queue_one", "allow", "cancel_previous"),
	"expires_in_seconds":      whole(func(r *models.ScheduleRule) *int64 { return &r.ExpireSeconds }, 1, maxDurationSeconds),
	"flexible_seconds":        whole(func(r *models.ScheduleRule) *int64 { return &r.FlexibleSeconds }, 0, mostFlexible),
	"complete_within_seconds": whole(func(r *models.ScheduleRule) *int64 { return &r.WithinSeconds }, 1, maxDurationSeconds),
	"jitter_seconds":          whole(func(r *models.ScheduleRule) *int64 { return &r.JitterSeconds }, 0, mostJitter),
	"max_failures_in_a_row":   (*scheduleDraft).mostFailures,
	"enabled":                 (*scheduleDraft).setEnabled,
	"start_at":                when(func(r *models.ScheduleRule) *models.Instant { return &r.StartAt }),
	"end_at":                  when(func(r *models.ScheduleRule) *models.Instant { return &r.EndAt }),
	"calendar_exclude":        (*scheduleDraft).exclude,
	"description":             free(func(r *models.ScheduleRule) *string { return &r.Description }, maxDescriptionBytes),
	"owner":                   free(func(r *models.ScheduleRule) *string { return &r.Owner }, 200),
	"runbook_url":             free(func(r *models.ScheduleRule) *string { return &r.RunbookURL }, 2000),
}

// readScheduleBody reads a body over what stands and checks the whole.
func readScheduleBody(d *handlers.Deps, c *fiber.Ctx, text []byte, row *models.Schedule) (enabled *bool, err error) {
	r := reader(d, c)
	before := row.Rule
	draft := &scheduleDraft{row: row, rule: &row.Rule, preset: plain(), tasks: r, problem: r.problem}
	v, err := body.Open(text, "body", r.problem)
	if err != nil {
		return nil, err
	}
	v.Members(draft.member)
	draft.finish()
	for _, err := range []error{r.err(), draft.unsound, draft.denied} {
		if err != nil {
			return nil, err
		}
	}
	return draft.enabled, checkRule(row, before, d.Now())
}

func (d *scheduleDraft) member(name string, v body.Value) {
	if read, known := scheduleMembers[name]; known {
		read(d, v)
		return
	}
	v.Wrong("there is no such field")
}

// timezone is UTC where none is named, and said to be.
func (d *scheduleDraft) timezone(v body.Value) {
	if d.rule.Timezone = d.preset.Timezone; !v.Null() {
		d.rule.Timezone = cmp.Or(v.String(0, 200), d.preset.Timezone)
	}
}

func (d *scheduleDraft) kind(v body.Value) {
	d.rule.Kind = v.OneOf(scheduleKinds...)
}

func (d *scheduleDraft) intervalFrom(v body.Value) {
	if d.rule.FromEnd = false; !v.Null() {
		d.rule.FromEnd = v.OneOf("start", "end") == "end"
	}
}

func (d *scheduleDraft) mostFailures(v body.Value) {
	if d.rule.MostFailures = 0; !v.Null() {
		d.rule.MostFailures = int32(v.Int(1, 1_000_000))
	}
}

func (d *scheduleDraft) partitions(v body.Value) {
	if d.rule.Partitions = 0; !v.Null() {
		d.rule.Partitions = int32(v.Int(1, mostPartitions))
	}
}

func (d *scheduleDraft) setEnabled(v body.Value) {
	on := v.Null() || v.Bool()
	d.enabled = &on
}

func (d *scheduleDraft) exclude(v body.Value) {
	if d.rule.Exclude = nil; v.Null() {
		return
	}
	if n := v.Elements(func(i int, e body.Value) {
		if i < mostExcluded {
			d.rule.Exclude = append(d.rule.Exclude, e.String(1, 40))
		}
	}); n > mostExcluded {
		v.Wrong("must have at most %d dates", mostExcluded)
	}
}

// finish checks what members say together.
func (d *scheduleDraft) finish() {
	need := func(given bool, name, of string) {
		switch {
		case d.rule.Kind == of && !given:
			d.problem.Addf("body."+name, "is needed by kind %s", of)
		case d.rule.Kind != of && d.rule.Kind != "" && given:
			d.problem.Addf("body."+name, "is of kind %s", of)
		}
	}
	if d.row.Name == "" && !d.problem.Any() {
		d.problem.Addf("body.name", "is needed")
	}
	if d.rule.Kind == "" && !d.problem.Any() {
		d.problem.Addf("body.kind", "is needed")
	}
	switch {
	case len(d.given) > 1:
		d.problem.Addf("body."+d.given[1], "stands beside %s; give one of the two", d.given[0])
	case d.row.Work.Task == nil && !d.problem.Any() && d.unsound == nil:
		d.problem.Addf("body.task", "is needed, or a workflow")
	}
	need(d.rule.Expression != "", "expression", "cron")
	need(d.rule.RunAt > 0, "run_at", "once")
	need(d.rule.Event != nil, "event", "event")
	need(d.rule.Drain != nil, "drain", "drain")
	if d.rule.Kind != "interval" {
		need(d.rule.EverySeconds != 0, "every_seconds", "interval")
		need(d.rule.FromEnd, "interval_from", "interval")
	}
	if start, end := d.rule.StartAt, d.rule.EndAt; end > 0 && end < start {
		d.problem.Addf("body.end_at", "must not be before start_at")
	}
	if url := d.rule.RunbookURL; url != "" && !isWebURL(url) {
		d.problem.Addf("body.runbook_url", "is no URL of the form https://…")
	}
	d.weighWork()
	d.finishFeed()
}

// checkRule lets the calendar judge. Whether it ever fires is asked only of what says when: the description of a schedule
// that is over may still be edited.
func checkRule(row *models.Schedule, before models.ScheduleRule, now models.Instant) error {
	created := row.CreatedAt
	if created == 0 {
		created = now
	}
	if !reflect.DeepEqual(row.Rule.Timing(), before.Timing()) {
		return refusedSchedule(calendar.CheckRule(&row.Rule, created, now, leastInterval))
	}
	return nil
}
