package api

import (
	"encoding/json"
	"time"

	"nightshift/handlers"
	"nightshift/models"
	"nightshift/models/postgres"
	"nightshift/scheduler/calendar"
)

// ScheduleView is a schedule as callers see it.
type ScheduleView struct {
	ID          string `json:"id"`
	Name        string `json:"name"`
	Environment string `json:"environment"`
	ruleView
	Enabled          bool          `json:"enabled"`
	PausedBy         *string       `json:"paused_by" doc:"who, or failures"`
	PauseReason      *string       `json:"pause_reason"`
	NextRunAt        handlers.Time `json:"next_run_at" doc:"null while nothing is to come"`
	LastRun          *lastRunView  `json:"last_run"`
	LastSuccessAt    handlers.Time `json:"last_success_at"`
	Failures         int32         `json:"consecutive_failures"`
	P50              *float64      `json:"p50_seconds" doc:"of the last hundred that started, from firing to success or failure"`
	P95              *float64      `json:"p95_seconds"`
	EffectiveSeconds *float64      `json:"effective_every_seconds" doc:"the mean time between its last runs since it was edited; where fewer than ten started, between occurrences; null for once"`
	CreatedAt        handlers.Time `json:"created_at"`
	UpdatedAt        handlers.Time `json:"updated_at"`
	Version          int64         `json:"version"`
}

// ruleView is what a schedule was told.
type ruleView struct {
	Kind           string          `json:"kind" enum:"cron,interval,once,event,drain"`
	Expression     *string         `json:"expression"`
	Timezone       string          `json:"timezone"`
	Gap            string          `json:"dst_gap" enum:"shift,skip"`
	Fold           string          `json:"dst_overlap" enum:"first,second,both"`
	EverySeconds   *int64          `json:"every_seconds"`
	IntervalFrom   *string         `json:"interval_from" enum:"start,end"`
	RunAt          handlers.Time   `json:"run_at"`
	Event          *EventRuleView  `json:"event"`
	Drain          *DrainRuleView  `json:"drain"`
	Task           json.RawMessage `json:"task"`
	Workflow       json.RawMessage `json:"workflow"`
	Partitions     *int32          `json:"partitions"`
	Misfire        string          `json:"misfire_policy" enum:"skip,run_once,catch_up"`
	Grace          int64           `json:"misfire_grace_seconds"`
	CatchUp        int64           `json:"catch_up_limit"`
	Overlap        string          `json:"overlap_policy" enum:"skip,queue_one,allow,cancel_previous"`
	ExpiresIn      *int64          `json:"expires_in_seconds"`
	Flexible       *int64          `json:"flexible_seconds"`
	Jitter         *int64          `json:"jitter_seconds"`
	CompleteWithin *int64          `json:"complete_within_seconds"`
	MostFailures   *int32          `json:"max_failures_in_a_row"`
	StartAt        handlers.Time   `json:"start_at"`
	EndAt          handlers.Time   `json:"end_at"`
	Exclude        []string        `json:"calendar_exclude"`
	Description    *string         `json:"description"`
	Owner          *string         `json:"owner"`
	RunbookURL     *string         `json:"runbook_url"`
}

type lastRunView struct {
	RunID        string        `json:"run_id"`
	Outcome      *string       `json:"outcome" doc:"null while it waits for the run before it"`
	ScheduledFor handlers.Time `json:"scheduled_for"`
	Late         float64       `json:"lateness_seconds"`
}

func viewRule(r *models.ScheduleRule, work *models.ScheduleWork) ruleView {
	v := ruleView{
		Kind: r.Kind, Expression: handlers.Null(r.Expression), Timezone: r.Timezone, Gap: r.Gap, Fold: r.Fold, EverySeconds: handlers.Null(r.EverySeconds),
		RunAt: handlers.Time(r.RunAt), Event: viewEventRule(r.Event), Drain: viewDrainRule(r.Drain), Task: work.Given, Misfire: r.Misfire, Grace: r.GraceSeconds, CatchUp: r.CatchUp, Overlap: r.Overlap,
		Workflow: null, Partitions: handlers.Null(r.Partitions), Flexible: handlers.Null(r.FlexibleSeconds), CompleteWithin: handlers.Null(r.WithinSeconds),
		ExpiresIn: handlers.Null(r.ExpireSeconds), Jitter: handlers.Null(r.JitterSeconds), MostFailures: handlers.Null(r.MostFailures),
		StartAt: handlers.Time(r.StartAt), EndAt: handlers.Time(r.EndAt), Exclude: handlers.List(r.Exclude),
		Description: handlers.Null(r.Description), Owner: handlers.Null(r.Owner), RunbookURL: handlers.Null(r.RunbookURL),
	}
	if r.Workflow {
		v.Task, v.Workflow = null, work.Given
	}
	if r.Kind == "interval" {
		from := "start"
		if r.FromEnd {
			from = "end"
		}
		v.IntervalFrom = &from
	}
	return v
}

func viewSchedule(environment string, now models.Instant) func(postgres.ScheduleRow) ScheduleView {
	return func(row postgres.ScheduleRow) ScheduleView {
		s := &row.State
		v := ScheduleView{
			ID: row.ID.Text(models.SchedulePrefix), Name: row.Name, Environment: environment, ruleView: viewRule(&row.Rule, &row.Work),
			Enabled: s.Enabled && (!row.Rule.Disabled || s.Forced), PausedBy: handlers.Null(s.PausedBy), PauseReason: handlers.Null(s.PauseReason),
			LastSuccessAt: handlers.Time(s.LastSuccess), Failures: s.Failures, P50: row.P50, P95: row.P95,
			CreatedAt: handlers.Time(row.CreatedAt), UpdatedAt: handlers.Time(row.UpdatedAt), Version: row.Version,
		}
		if !s.LastRun.IsZero() {
			v.LastRun = &lastRunView{s.LastRun.Text(models.RunPrefix), handlers.Null(s.LastOutcome), handlers.Time(s.LastFor), float64(s.LastLateMS) / 1000}
		}
		table, err := calendar.Of(&row.Rule, row.CreatedAt)
		if err != nil {
			return v // it was checked when it was saved
		}
		table.Freezes = calendar.FreezesOf(row.Freezes)
		v.EffectiveSeconds = handlers.Null(table.Rule.Period().Seconds())
		if row.Every != nil {
			v.EffectiveSeconds = row.Every
		}
		if v.Enabled {
			v.NextRunAt = handlers.Time(nextRun(&row, table, now))
		}
		return v
	}
}

// nextRun is when the schedule runs next. One that counts from the end of the run before can say so only once that is over.
func nextRun(row *postgres.ScheduleRow, table *calendar.Timetable, now models.Instant) models.Instant {
	if row.Rule.Gathers() {
		return 0 // it runs when something comes
	}
	if row.Rule.FromEnd {
		every := time.Duration(row.Rule.EverySeconds) * time.Second
		if row.State.LastFor > row.State.LastEnd {
			return 0 // it runs
		}
		return max(row.State.LastEnd.Add(every), row.State.Mark, row.Rule.StartAt.Add(every), row.CreatedAt.Add(every))
	}
	o, ok := table.NextRun(max(now, row.State.Mark).Time())
	if !ok {
		return 0
	}
	return models.InstantOf(o.At)
}

// RunView is one occurrence and what became of it.
type RunView struct {
	ID           string        `json:"id"`
	ScheduleID   string        `json:"schedule_id"`
	ScheduledFor handlers.Time `json:"scheduled_for"`
	FiredAt      handlers.Time `json:"fired_at"`
	Origin       string        `json:"origin" doc:"timer, event, drain, manual:<run id> or backfill:<id>"`
	Outcome      *string       `json:"outcome" enum:"dispatched,skipped_overlap,skipped_paused,superseded,misfired,expired,excluded,failed" doc:"null while it waits for the run before it"`
	Cause        *string       `json:"cause"`
	TaskID       *string       `json:"task_id"`
	WorkflowID   *string       `json:"workflow_id"`
	ResultState  *string       `json:"result_state" doc:"where its work stands"`
	Events       []EventView   `json:"events" doc:"the triggers that it took, oldest first; null where it took none, and where a page would get too large: then read taken_url"`
	Taken        int32         `json:"taken" doc:"how many triggers or items it took"`
	TakenURL     *string       `json:"taken_url" doc:"lists them; null where it took none"`
	Late         float64       `json:"late_seconds"`
	LateAt       handlers.Time `json:"late_at" doc:"when it was told that it had not ended within complete_within_seconds"`
	FinishedAt   handlers.Time `json:"finished_at"`
}

func viewRun(row postgres.RunRow) RunView {
	v := RunView{
		ID: row.ID.Text(models.RunPrefix), ScheduleID: row.Schedule.Text(models.SchedulePrefix), ScheduledFor: handlers.Time(row.ScheduledFor),
		FiredAt: handlers.Time(row.FiredAt), Origin: row.Origin, Outcome: handlers.Null(row.Outcome), Cause: handlers.Null(row.Cause),
		TaskID: idOrNull(models.TaskPrefix, row.Task), WorkflowID: idOrNull(models.WorkflowPrefix, row.Workflow), LateAt: handlers.Time(row.LateAt), Late: float64(row.LateMS) / 1000, FinishedAt: handlers.Time(row.FinishedAt),
	}
	v.ResultState = handlers.Null(row.Stands)
	return v
}

// FieldChange is a field in which two versions differ.
type FieldChange struct {
	Field  string          `json:"field"`
	Before json.RawMessage `json:"before"`
	After  json.RawMessage `json:"after"`
}

// ScheduleVersionView is a schedule as an edit left it.
type ScheduleVersionView struct {
	Version   int64         `json:"version"`
	CreatedAt handlers.Time `json:"created_at"`
	By        models.Actor  `json:"by"`
	Changed   []string      `json:"changed" doc:"the fields in which it differs from the version before"`
	Changes   []FieldChange `json:"changes" doc:"what they were and became"`
	Name      string        `json:"name"`
	ruleView
}

func viewVersion(row, before *models.Schedule) ScheduleVersionView {
	v := ScheduleVersionView{
		Version: row.Version, CreatedAt: handlers.Time(row.UpdatedAt), By: row.By, Changed: []string{}, Changes: []FieldChange{}, Name: row.Name, ruleView: viewRule(&row.Rule, &row.Work),
	}
	if before != nil {
		v.Changes = changed(before, row)
		for _, c := range v.Changes {
			v.Changed = append(v.Changed, c.Field)
		}
	}
	return v
}

func idOrNull(prefix string, id models.ID) *string {
	if id.IsZero() {
		return nil
	}
	text := id.Text(prefix)
	return &text
}
