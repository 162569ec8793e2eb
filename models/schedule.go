package models

import "encoding/json"

// Schedule says when work should exist. What it does stands in Work, which a Snapshot leaves out: it is read when a run
// is due.
type Schedule struct {
	Env       int32
	ID        ID
	Name      string
	Rule      ScheduleRule
	Work      ScheduleWork
	By        Actor // who made this version
	CreatedAt Instant
	UpdatedAt Instant
	Version   int64
}

// ScheduleRule is when, and what becomes of an occurrence that is late or meets the run before it. Empty words are the
// defaults of scheduler/calendar.
type ScheduleRule struct {
	Kind          string   `json:"kind"` // cron, interval, once, event, drain
	Expression    string   `json:"expression,omitempty"`
	Timezone      string   `json:"timezone,omitempty"`
	Gap           string   `json:"dst_gap,omitempty"`
	Fold          string   `json:"dst_overlap,omitempty"`
	EverySeconds  int64    `json:"every_seconds,omitempty"`
	FromEnd       bool     `json:"from_end,omitempty"` // an interval counts from the end of the run before
	RunAt         Instant  `json:"run_at,omitempty"`
	StartAt       Instant  `json:"start_at,omitempty"`
	EndAt         Instant  `json:"end_at,omitempty"`
	Exclude       []string `json:"calendar_exclude,omitempty"`
	Misfire       string   `json:"misfire_policy,omitempty"`
	GraceSeconds  int64    `json:"misfire_grace_seconds"`
	CatchUp       int64    `json:"catch_up_limit"`
	Overlap       string   `json:"overlap_policy,omitempty"`
	ExpireSeconds int64    `json:"expires_in_seconds,omitempty"`
	JitterSeconds int64    `json:"jitter_seconds,omitempty"`
	MostFailures  int32    `json:"max_failures_in_a_row,omitempty"`
	Description   string   `json:"description,omitempty"`
	Owner         string   `json:"owner,omitempty"`
	RunbookURL    string   `json:"runbook_url,omitempty"`

	Partitions      int32 `json:"partitions,omitempty"`
	FlexibleSeconds int64 `json:"flexible_seconds,omitempty"`
	WithinSeconds   int64 `json:"complete_within_seconds,omitempty"`
	Disabled        bool  `json:"disabled,omitempty"` // by what was configured; operators pause in ScheduleState

	Event *EventRule `json:"event,omitempty"` // of kind event
	Drain *DrainRule `json:"drain,omitempty"` // of kind drain

	// What is known of the work without reading it.
	Workflow bool     `json:"workflow,omitempty"` // its runs make one
	FanOut   int32    `json:"fan_out,omitempty"`  // tasks a run makes, of kind drain a portion; 0: one
	Bytes    int64    `json:"bytes,omitempty"`    // their inputs and payloads, before anything is filled in
	Fed      int32    `json:"fed,omitempty"`      // those of them that get what was taken: they wait for no other; 0: one
	Marks    []string `json:"marks,omitempty"`    // watermarks that the payloads ask for
	Vars     []string `json:"vars,omitempty"`     // variables likewise
}

// Freeze is a time of an environment in which no schedule fires: from its begin until just before its end.
type Freeze struct {
	Begin  Instant `json:"begin"`
	End    Instant `json:"end"`
	Reason string  `json:"reason,omitempty"`
}

// Variables are an environment's, by name. They are set together.
type Variables struct {
	Env     int32
	Vars    map[string]string
	Version int64
	At      Instant
}

// FirstVariables is the version of variables that were never set.
const FirstVariables = 1

// ScheduleTask says which schedule made a task or a workflow.
type ScheduleTask struct {
	Env      int32
	Schedule ID
	Task     ID // or workflow
}

// EventRule says which triggers a schedule is for, and when those that have gathered become a run.
type EventRule struct {
	Name            string  `json:"name"`
	DebounceSeconds float64 `json:"debounce_seconds"`           // so long no new one
	MaxWaitSeconds  float64 `json:"max_wait_seconds,omitempty"` // but no longer than this after the first; 0: no bound
	MaxEvents       int32   `json:"max_events,omitempty"`       // and at once when there are so many; 0: no bound
}

// DrainRule says which queue a schedule empties, and in what portions.
type DrainRule struct {
	Queue     string `json:"queue"`
	MaxItems  int32  `json:"max_items"`  // a run
	BatchSize int32  `json:"batch_size"` // a task
}

// Gathers says that what becomes a run comes from outside, not from a calendar.
func (r *ScheduleRule) Gathers() bool { return r.Event != nil || r.Drain != nil }

// Timing is what of a rule says when it fires: the rule without what becomes of its occurrences, and what is said about it.
func (r ScheduleRule) Timing() ScheduleRule {
	return ScheduleRule{
		Kind: r.Kind, Expression: r.Expression, Timezone: r.Timezone, Gap: r.Gap, Fold: r.Fold, EverySeconds: r.EverySeconds, FromEnd: r.FromEnd,
		RunAt: r.RunAt, StartAt: r.StartAt, EndAt: r.EndAt, Exclude: r.Exclude, Event: r.Event, Drain: r.Drain,
	}
}

// ScheduleWork is what a run does.
type ScheduleWork struct {
	Task  json.RawMessage // the engine's template of a task, or of a workflow
	Given json.RawMessage // the task or workflow as it was sent, as answered back
}

// ScheduleState is what operators and runs make of a schedule. An edit leaves it alone but for the mark.
type ScheduleState struct {
	Env         int32
	ID          ID
	Enabled     bool
	PausedBy    string // who paused it, "failures" when it did so itself
	PauseReason string
	Mark        Instant // what lies up to here is decided
	Until       Instant // of a long outage that is worked through: the moment it began with; 0: none is
	LastRun     ID
	LastOutcome string
	LastFor     Instant
	LastLateMS  int64
	LastSuccess Instant
	LastEnd     Instant // of a run
	Failures    int32   // in a row
	Forced      bool    // an operator lets it go on that was configured not to be enabled
	Profile     RunProfile
}

// RunProfile is what is known of the work that a run makes. Of three values the half, seven tenths and nine tenths of what
// was seen stayed within.
type RunProfile struct {
	Lane    int32    // where most of its tasks go; 0: not known
	Class   int32    // of most of them; 0: not known
	Runs    int32    // that were seen; 0: it is what was expected
	Tasks   [3]int64 // of a run, in thousandths
	TaskMS  [3]int64 // that each of them takes, in milliseconds
	LastsMS int64    // from the first to the last of them, where there are several; 0: they start together
}

// Run is one occurrence of a schedule and what became of it, unique by schedule, moment and origin.
type Run struct {
	Env          int32
	ID           ID
	Schedule     ID
	ScheduledFor Instant
	Origin       string // timer, event, drain, manual:<run id>, backfill:<id>
	FiredAt      Instant
	Outcome      string // as scheduler/calendar names them; empty while it waits for the run before it
	Cause        string
	Task         ID    // zero: none was made, or a workflow
	State        State // of its work in the words of tasks, as far as it has ended
	LateMS       int64
	FinishedAt   Instant
	Workflow     ID      // zero: none was made
	DueAt        Instant // it must have ended by then; 0: it may take its time
	LateAt       Instant // when it was told that it had not
}

// Work is the id of what the run made, zero when that is nothing.
func (r *Run) Work() ID {
	if r.Task.IsZero() {
		return r.Workflow
	}
	return r.Task
}

// Open says that the run is not over: it waits, or its work has not ended.
func (r *Run) Open() bool { return r.Outcome == "" || !r.Work().IsZero() && r.FinishedAt == 0 }

// SchedulePlan is what a batch changes of schedules: rows, each replaced by its id. A saved schedule is a new version.
type SchedulePlan struct {
	Saved  []Schedule
	Gone   []TaskRef
	States []ScheduleState
	Runs   []Run
	Tasks  []ScheduleTask
	Vars   []Variables
}

// Empty says that nothing changes.
func (p *SchedulePlan) Empty() bool {
	return len(p.Saved)+len(p.Gone)+len(p.States)+len(p.Runs)+len(p.Tasks)+len(p.Vars) == 0
}

// ScheduleSnapshot is what the engine keeps of schedules: all of them, and the runs whose work has not ended or that
// wait. Their State is that of their task now.
type ScheduleSnapshot struct {
	Schedules []Schedule // without Work
	States    []ScheduleState
	Runs      []Run // by id
}
