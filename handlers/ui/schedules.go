package ui

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/gofiber/fiber/v2"

	"nightshift/handlers"
	"nightshift/models"
	"nightshift/models/postgres"
	"nightshift/scheduler/calendar"
	"nightshift/templates"
)

// schedule is what a page shows of the API's answer.
type schedule struct {
	ID            string          `json:"id"`
	Name          string          `json:"name"`
	Kind          string          `json:"kind"`
	Expression    string          `json:"expression"`
	Timezone      string          `json:"timezone"`
	Gap           string          `json:"dst_gap"`
	Fold          string          `json:"dst_overlap"`
	EverySeconds  int64           `json:"every_seconds"`
	IntervalFrom  string          `json:"interval_from"`
	RunAt         time.Time       `json:"run_at"`
	Task          json.RawMessage `json:"task"`
	Workflow      json.RawMessage `json:"workflow"`
	Event         *eventRule      `json:"event"`
	Drain         *drainRule      `json:"drain"`
	Partitions    int64           `json:"partitions"`
	Flexible      int64           `json:"flexible_seconds"`
	Within        int64           `json:"complete_within_seconds"`
	Misfire       string          `json:"misfire_policy"`
	Grace         int64           `json:"misfire_grace_seconds"`
	CatchUp       int64           `json:"catch_up_limit"`
	Overlap       string          `json:"overlap_policy"`
	ExpiresIn     int64           `json:"expires_in_seconds"`
	Jitter        int64           `json:"jitter_seconds"`
	MostFailures  int64           `json:"max_failures_in_a_row"`
	StartAt       time.Time       `json:"start_at"`
	EndAt         time.Time       `json:"end_at"`
	Exclude       []string        `json:"calendar_exclude"`
	Description   string          `json:"description"`
	Owner         string          `json:"owner"`
	RunbookURL    string          `json:"runbook_url"`
	Enabled       bool            `json:"enabled"`
	PausedBy      string          `json:"paused_by"`
	PauseReason   string          `json:"pause_reason"`
	NextRunAt     time.Time       `json:"next_run_at"`
	LastSuccessAt time.Time       `json:"last_success_at"`
	Failures      int             `json:"consecutive_failures"`
	P50           float64         `json:"p50_seconds"`
	P95           float64         `json:"p95_seconds"`
	CreatedAt     time.Time       `json:"created_at"`
	Version       int64           `json:"version"`
	LastRun       *struct {
		Outcome      string    `json:"outcome"`
		ScheduledFor time.Time `json:"scheduled_for"`
		Late         float64   `json:"lateness_seconds"`
	} `json:"last_run"`
}

type eventRule struct {
	Name     string  `json:"name"`
	Debounce float64 `json:"debounce_seconds"`
	MaxWait  float64 `json:"max_wait_seconds"`
	Most     int32   `json:"max_events"`
}

type drainRule struct {
	Queue     string `json:"queue"`
	MaxItems  int32  `json:"max_items"`
	BatchSize int32  `json:"batch_size"`
}

// list is a page of the API's rows.
type list[T any] struct {
	Data []T    `json:"data"`
	Next string `json:"next_cursor"`
}

// listPath asks for a page of rows from the cursor that the page was asked for.
func listPath(c *fiber.Ctx, path string, rows int) string {
	values := url.Values{"limit": {fmt.Sprint(rows)}}
	if cursor := c.Query("cursor"); cursor != "" {
		values.Set("cursor", cursor)
	}
	return path + "?" + values.Encode()
}

const markRuns = 20 // runs that a row of the list marks

func (p *pages) schedules(c *fiber.Ctx) error {
	if c.Query("fragment") == "forecast" {
		return p.forecast(c)
	}
	var found struct {
		list[schedule]
		Total struct {
			Value int64 `json:"value"`
		} `json:"total"`
	}
	view := templates.SchedulesView{Filter: scheduleFilter(c.Query), Earlier: c.Query("cursor") != ""}
	ask := listPath(c, apiPath("schedules"), pageRows) + "&count=true&" + askedSchedules(view.Filter).Encode()
	if err := p.read(c, strings.TrimSuffix(ask, "&"), &found); err != nil {
		return err
	}
	view.Next, view.Total = found.Next, int(found.Total.Value)
	marks, err := p.marks(c, found.Data)
	if err != nil {
		return err
	}
	for i := range found.Data {
		row := found.Data[i].row()
		row.Marks, row.Lately = marks[row.ID].marks, marks[row.ID].lately
		view.Rows = append(view.Rows, row)
	}
	if c.Query("fragment") == "rows" {
		return show(c, fiber.StatusOK, templates.SchedulesRegion(p.fragment(c, "Schedules", "/schedules"), view))
	}
	page, err := p.whole(c, "Schedules", "/schedules")
	if err != nil {
		return err
	}
	return show(c, fiber.StatusOK, templates.Schedules(page, view))
}

// runsOf are the last runs of a schedule: as marks, oldest first, and in words.
type runsOf struct {
	marks  []templates.RunMark
	lately templates.Lately
}

// marks are the last runs of each schedule.
func (p *pages) marks(c *fiber.Ctx, of []schedule) (map[string]runsOf, error) {
	caller, ids := handlers.CallerOf(c), make([]models.ID, 0, len(of))
	for _, s := range of {
		id, err := models.ParseID(models.SchedulePrefix, s.ID)
		if err != nil {
			return nil, err
		}
		ids = append(ids, id)
	}
	runs, err := p.World.LastRuns(c.UserContext(), caller.Scope(), caller.Env, ids, markRuns)
	out := map[string]runsOf{}
	for id, rows := range runs {
		marks := make([]templates.RunMark, len(rows))
		for i := range rows {
			marks[len(rows)-1-i] = markOf(&rows[i])
		}
		out[id.Text(models.SchedulePrefix)] = runsOf{marks, latelyOf(rows)}
	}
	return out, err
}

func markOf(r *postgres.RunRow) templates.RunMark {
	state := r.Stands
	mark := templates.RunMark{Tone: runTone(r.Outcome, state), Title: r.ScheduledFor.Time().UTC().Format("2 Jan 15:04 UTC") + ": " + runWords(r.Outcome, state)}
	if r.Cause != "" {
		mark.Title += " (" + r.Cause + ")"
	}
	return mark
}

// latelyOf sums the last runs up, the newest first: how the last one stands, and how many came to nothing that nobody
// left out, and why.
func latelyOf(rows []postgres.RunRow) (l templates.Lately) {
	for i := range rows {
		r := &rows[i]
		if i == 0 {
			l.Tone, l.Words, l.At = runTone(r.Outcome, r.Stands), runWords(r.Outcome, r.Stands), r.ScheduledFor.Time()
		}
		switch calendar.Outcome(r.Outcome) {
		case "", calendar.Dispatched, calendar.SkippedPaused, calendar.Excluded: // wanted so
			continue
		}
		if l.Missed++; l.Missed == 1 {
			l.Why = runWords(r.Outcome, "")
			if r.Cause != "" {
				l.Why += ": " + r.Cause
			}
		}
	}
	return l
}

// runTone is the state whose colour a run has.
func runTone(outcome, state string) string {
	switch {
	case outcome == "dispatched" && state != "":
		return state
	case outcome == "", outcome == "dispatched":
		return "pending"
	case outcome == "failed":
		return "failed"
	case outcome == "superseded":
		return "cancelled"
	case outcome == "misfired", outcome == "expired":
		return "expired"
	default:
		return "skipped"
	}
}

func runWords(outcome, state string) string {
	switch {
	case outcome == "":
		return "waits for the run before it"
	case outcome == "dispatched" && state != "":
		return strings.ReplaceAll(state, "_", " ")
	default:
		return strings.ReplaceAll(outcome, "_", " ")
	}
}

func (s *schedule) row() templates.ScheduleRow {
	return templates.ScheduleRow{
		ID: s.ID, Name: s.Name, Words: s.words(), Kind: s.Kind, Timezone: s.Timezone, Enabled: s.Enabled, PausedBy: s.PausedBy, Reason: s.PauseReason,
		NextAt: s.NextRunAt, Failures: s.Failures, P50: s.P50, P95: s.P95,
	}
}

// rule is the schedule's rule, as the calendar reads it.
func (s *schedule) rule() models.ScheduleRule {
	rule := models.ScheduleRule{
		Kind: s.Kind, Partitions: int32(s.Partitions), Expression: s.Expression, Timezone: s.Timezone, Gap: s.Gap, Fold: s.Fold, EverySeconds: s.EverySeconds,
		FromEnd: s.IntervalFrom == "end", RunAt: models.InstantOf(s.RunAt), StartAt: models.InstantOf(s.StartAt), EndAt: models.InstantOf(s.EndAt),
		Exclude: s.Exclude, Misfire: "run_once", GraceSeconds: 60, CatchUp: 100, Overlap: "skip",
	}
	if e := s.Event; e != nil {
		rule.Event = &models.EventRule{Name: e.Name, DebounceSeconds: e.Debounce, MaxWaitSeconds: e.MaxWait, MaxEvents: e.Most}
	}
	if d := s.Drain; d != nil {
		rule.Drain = &models.DrainRule{Queue: d.Queue, MaxItems: d.MaxItems, BatchSize: d.BatchSize}
	}
	return rule
}

// words is the rule in words.
func (s *schedule) words() string {
	rule := s.rule()
	if !timed(s.Kind) {
		return calendar.GatherWords(&rule)
	}
	table, err := calendar.Of(&rule, models.InstantOf(s.CreatedAt))
	if err != nil {
		return s.Kind
	}
	if rule.FromEnd {
		return table.Rule.Words() + ", from the end of the run before"
	}
	return table.Rule.Words()
}

// timed says that the kind fires by the clock.
func timed(kind string) bool { return kind == "cron" || kind == "interval" || kind == "once" }

const (
	nextRuns   = 10
	clockAhead = 400 * 24 * time.Hour // so far ahead are changes of the clock told
)

// preview lists what a rule does next. With the least time that must lie between its runs it says why it can't be saved; 0: it
// was.
func preview(rule *models.ScheduleRule, created, now models.Instant, least time.Duration, freezes []calendar.Freeze) templates.PreviewView {
	view := templates.PreviewView{Zone: rule.Timezone}
	if !timed(rule.Kind) {
		view.Words = calendar.GatherWords(rule) + ". It follows no clock: a run comes with what it is about."
		if least > 0 {
			if err := calendar.CheckRule(rule, created, now, least); err != nil {
				view.Wrong = sentence(detail(err))
			}
		}
		return view
	}
	table, err := calendar.Of(rule, created)
	if err == nil && least > 0 {
		err = calendar.CheckRule(rule, created, now, least)
	}
	if err != nil {
		view.Wrong = sentence(detail(err))
		return view
	}
	table.Freezes = freezes
	view.Words = table.Rule.Words()
	if rule.FromEnd {
		view.Words += ", from the end of the run before"
	}
	occurrences, _ := table.Between(now.Time(), now.Time().Add(50*365*24*time.Hour), nextRuns)
	for _, o := range occurrences {
		view.Rows = append(view.Rows, templates.NextRun{At: o.At, Local: localWords(o.At, now.Time()), Note: noteOf(o)})
	}
	changes := table.Rule.Changes(now.Time(), now.Time().Add(clockAhead), table.Policy)
	for _, change := range changes[:min(2, len(changes))] {
		view.Notes = append(view.Notes, sentence(change.Words))
	}
	return view
}

// localWords is a moment as the clock of its zone shows it: what says nothing new is left out.
func localWords(at, now time.Time) string {
	layout := "Mon 2 Jan"
	if at.Year() != now.Year() {
		layout += " 2006"
	}
	layout += " 15:04"
	if at.Second() != 0 {
		layout += ":05"
	}
	if _, offset := at.Zone(); offset != 0 {
		layout += " -07:00"
	}
	return at.Format(layout)
}

// frozen are the times of the environment in which nothing fires.
func (p *pages) frozen(c *fiber.Ctx) ([]calendar.Freeze, error) {
	caller := handlers.CallerOf(c)
	env, err := p.World.Environment(c.UserContext(), caller.Tenant, caller.Environment)
	return calendar.FreezesOf(env.Freezes), err
}

func noteOf(o calendar.Occurrence) string {
	switch {
	case o.Excluded != "":
		return "left out: " + o.Excluded
	case o.Note == calendar.NoteGap:
		return "the clock jumps over it"
	case o.Note == calendar.NoteOverlap:
		return "the clock shows it twice"
	default:
		return ""
	}
}
