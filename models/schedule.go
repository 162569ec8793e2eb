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
	Kind          string   `json:"kind"` // cron, interval, once
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
}

// ScheduleWork is what a run does.
type ScheduleWork struct {
	Task  json.RawMessage // the engine's template of a task
	Given json.RawMessage // the task as it was sent, as answered back
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
}

// Run is one occurrence of a schedule and what became of it, unique by schedule, moment and origin.
type Run struct {
	Env          int32
	ID           ID
	Schedule     ID
	ScheduledFor Instant
	Origin       string // timer, manual:<run id>
	FiredAt      Instant
	Outcome      string // as scheduler/calendar names them; empty while it waits for the run before it
	Cause        string
	Task         ID    // zero: none was made
	State        State // of the task, as far as it has ended
	LateMS       int64
	FinishedAt   Instant
}

// SchedulePlan is what a batch changes of schedules: rows, each replaced by its id. A saved schedule is a new version.
type SchedulePlan struct {
	Saved  []Schedule
	Gone   []TaskRef
	States []ScheduleState
	Runs   []Run
}

// Empty says that nothing changes.
func (p *SchedulePlan) Empty() bool {
	return len(p.Saved)+len(p.Gone)+len(p.States)+len(p.Runs) == 0
}

// ScheduleSnapshot is what the engine keeps of schedules: all of them, and the runs whose work has not ended or that
// wait. Their State is that of their task now.
type ScheduleSnapshot struct {
	Schedules []Schedule // without Work
	States    []ScheduleState
	Runs      []Run // by id
}
