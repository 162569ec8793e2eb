package postgres

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/jackc/pgx/v5"

	"nightshift/models"
)

// ScheduleRow is a schedule with what stands of it.
type ScheduleRow struct {
	models.Schedule
	State models.ScheduleState
	// P50 and P95 are how long of its last hundred runs those took that succeeded or failed, from firing to their end, in
	// seconds; nil before any did.
	P50, P95 *float64
	// Every is the mean time between those of them that came by themselves since the last edit; nil when they are few.
	Every   *float64
	Freezes []models.Freeze // of its environment
}

// RunRow is a run with the state that its work has now. A workflow that failed with dead letters has ended, though another
// life of theirs would open it, and its run, again.
type RunRow struct {
	models.Run
	Stands string // where its work stands, empty when it has none
}

const scheduleColumns = `s.env, s.id, s.name, s.rule::text, s.task::text, s.given::text, s.by::text, s.created_at, s.updated_at, s.version,
	t.enabled, t.paused_by, t.pause_reason, t.mark, t.until, t.last_run, t.last_outcome, t.last_for, t.last_late_ms, t.last_success, t.last_end,
	t.failures, took.p50, took.p95, took.every, t.forced, coalesce((SELECT e.freeze_windows::text FROM environments e WHERE e.env = s.env), '[]'), t.profile::text`

const scheduleTables = `schedules s JOIN schedule_states t ON t.env = s.env AND t.id = s.id,
	LATERAL (SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY took) FILTER (WHERE ended) AS p50,
			percentile_cont(0.95) WITHIN GROUP (ORDER BY took) FILTER (WHERE ended) AS p95,
			CASE WHEN count(*) FILTER (WHERE by_itself) >= 10 THEN (max(scheduled_for) FILTER (WHERE by_itself)
				- min(scheduled_for) FILTER (WHERE by_itself)) / 1e6::float8 / (count(*) FILTER (WHERE by_itself) - 1) END AS every
		FROM (SELECT (r.finished_at - r.fired_at) / 1e6::float8 AS took, r.finished_at IS NOT NULL AND r.state IN (8, 9) AS ended,
				r.scheduled_for, r.origin = 'timer' AND r.scheduled_for > s.updated_at AS by_itself FROM schedule_runs r
			WHERE r.env = s.env AND r.schedule = s.id AND r.outcome = 'dispatched' ORDER BY r.id DESC LIMIT 100) lately) took`

func readSchedule(row pgx.CollectableRow) (v ScheduleRow, err error) {
	var rule, task, given, by, freezes, profile string
	s := &v.State
	err = row.Scan(&v.Env, (*[16]byte)(&v.ID), &v.Name, &rule, &task, &given, &by, &v.CreatedAt, &v.UpdatedAt, &v.Version,
		&s.Enabled, &s.PausedBy, &s.PauseReason, &s.Mark, &s.Until, (*[16]byte)(&s.LastRun), &s.LastOutcome, &s.LastFor, &s.LastLateMS,
		&s.LastSuccess, &s.LastEnd, &s.Failures, &v.P50, &v.P95, &v.Every, &s.Forced, &freezes, &profile)
	s.Env, s.ID = v.Env, v.ID
	v.Work = models.ScheduleWork{Task: json.RawMessage(task), Given: json.RawMessage(given)}
	for text, into := range map[string]any{rule: &v.Rule, by: &v.By, freezes: &v.Freezes, profile: &s.Profile} { // any order: each on its own
		if err == nil {
			err = json.Unmarshal([]byte(text), into)
		}
	}
	return v, err
}

// Schedule finds a schedule by its TypeID or name.
func (w *World) Schedule(ctx context.Context, scope Scope, env int32, name string) (ScheduleRow, error) {
	where, arg := named(models.SchedulePrefix, "name", name)
	return one(ctx, w.db.For(scope), "schedule", name, readSchedule,
		`SELECT `+scheduleColumns+` FROM `+scheduleTables+` WHERE s.env = $2 AND s.`+where, arg, env)
}

// IDList asks for a page of rows by their id.
type IDList struct {
	After models.ID // the last row of the page before; zero: from the beginning
	Desc  bool
	Count bool // all rows are counted too
	Limit int
}

// ScheduleFilter says which schedules are listed; what is left empty leaves none out.
type ScheduleFilter struct {
	Kinds []string
	On    *bool  // enabled, as operators and configuration say together
	Name  string // a part of it
}

// Schedules lists an environment's.
func (w *World) Schedules(ctx context.Context, scope Scope, env int32, ask IDList, filter ScheduleFilter) ([]ScheduleRow, int64, error) {
	where, args := `s.env = $1`, []any{env}
	add := func(condition string, arg any) {
		args = append(args, arg)
		where += fmt.Sprintf(" AND "+condition, len(args))
	}
	if len(filter.Kinds) > 0 {
		add(`s.rule->>'kind' = ANY($%d)`, filter.Kinds)
	}
	if filter.On != nil {
		add(`(t.enabled AND (t.forced OR coalesce(s.rule->>'disabled', 'false') = 'false')) = $%d`, *filter.On)
	}
	if filter.Name != "" {
		add(`strpos(s.name, $%d) > 0`, filter.Name)
	}
	const counted = `schedules s JOIN schedule_states t ON t.env = s.env AND t.id = s.id`
	return idPage(ctx, w.db.For(scope), ask, readSchedule, scheduleTables, scheduleColumns, counted, `s`, where, args...)
}

const runColumns = `r.env, r.id, r.schedule, r.scheduled_for, r.origin, r.fired_at, r.outcome, r.cause, r.task, coalesce(t.state, r.state), r.late_ms, coalesce(r.finished_at, w.finished_at),
	r.workflow, coalesce(r.late_at, 0), w.state`

func readRun(row pgx.CollectableRow) (v RunRow, err error) {
	var task, flow *[16]byte
	var finished *int64
	var flowState *int16
	err = row.Scan(&v.Env, (*[16]byte)(&v.ID), (*[16]byte)(&v.Schedule), &v.ScheduledFor, &v.Origin, &v.FiredAt, &v.Outcome, &v.Cause,
		&task, (*int16)(&v.Run.State), &v.LateMS, &finished, &flow, &v.LateAt, &flowState)
	switch {
	case task != nil:
		v.Task, v.Stands = models.ID(*task), v.State.String()
	case flow != nil && flowState != nil:
		v.Workflow, v.Stands = models.ID(*flow), models.WorkflowState(*flowState).String()
	case flow != nil: // it was old, and is gone
		v.Workflow, v.Stands = models.ID(*flow), v.State.String()
	}
	if finished != nil {
		v.FinishedAt = models.Instant(*finished)
	}
	return v, err
}

// runWork joins what the runs r made.
const runWork = ` LEFT JOIN tasks t ON t.env = r.env AND t.id = r.task LEFT JOIN workflows w ON w.env = r.env AND w.id = r.workflow`

const runTables = `schedule_runs r` + runWork

// Runs lists the runs of a schedule.
func (w *World) Runs(ctx context.Context, scope Scope, of models.TaskRef, ask IDList) ([]RunRow, int64, error) {
	return idPage(ctx, w.db.For(scope), ask, readRun, runTables, runColumns, `schedule_runs r`, `r`, `r.env = $1 AND r.schedule = $2`, of.Env, [16]byte(of.ID))
}

// Run finds a run by its id.
func (w *World) Run(ctx context.Context, scope Scope, env int32, id models.ID) (RunRow, error) {
	return one(ctx, w.db.For(scope), "run", id.Text(models.RunPrefix), readRun, `SELECT `+runColumns+` FROM `+runTables+` WHERE r.env = $1 AND r.id = $2`, env, [16]byte(id))
}

const versionColumns = `v.env, v.schedule, v.name, v.rule::text, v.task::text, v.given::text, v.by::text, v.at, v.version`

func readVersion(row pgx.CollectableRow) (v models.Schedule, err error) {
	var rule, task, given, by string
	err = row.Scan(&v.Env, (*[16]byte)(&v.ID), &v.Name, &rule, &task, &given, &by, &v.UpdatedAt, &v.Version)
	v.Work = models.ScheduleWork{Task: json.RawMessage(task), Given: json.RawMessage(given)}
	for text, into := range map[string]any{rule: &v.Rule, by: &v.By} { // any order: each on its own
		if err == nil {
			err = json.Unmarshal([]byte(text), into)
		}
	}
	return v, err
}

// ScheduleVersions lists the versions of a schedule by their numbers.
func (w *World) ScheduleVersions(ctx context.Context, scope Scope, of models.TaskRef, ask RowList) ([]models.Schedule, int64, error) {
	return page(ctx, w.db.For(scope), ask, readVersion, `schedule_versions v`, versionColumns, `v.version`, `v.env = $1 AND v.schedule = $2`, of.Env, [16]byte(of.ID))
}

// ScheduleVersion finds one of them.
func (w *World) ScheduleVersion(ctx context.Context, scope Scope, of models.TaskRef, version int64) (models.Schedule, error) {
	return one(ctx, w.db.For(scope), "version", fmt.Sprint(version), readVersion,
		`SELECT `+versionColumns+` FROM schedule_versions v WHERE v.env = $1 AND v.schedule = $2 AND v.version = $3`, of.Env, [16]byte(of.ID), version)
}

// idPage reads the rows of a page by their ids, and, where that is asked, how many rows there are in all.
func idPage[T any](ctx context.Context, as *Scoped, ask IDList, read func(pgx.CollectableRow) (T, error), tables, columns, counted, of, where string, args ...any) (out []T, total int64, err error) {
	order, beyond := "ASC", ">"
	if ask.Desc {
		order, beyond = "DESC", "<"
	}
	from, given := where, args
	if !ask.After.IsZero() {
		from += fmt.Sprintf(" AND %s.id %s $%d", of, beyond, len(args)+1)
		given = append(append([]any{}, args...), [16]byte(ask.After))
	}
	err = as.Read(ctx, func(tx pgx.Tx) error {
		if ask.Count {
			if err := tx.QueryRow(ctx, `SELECT count(*) FROM `+counted+` WHERE `+where, args...).Scan(&total); err != nil {
				return err
			}
		}
		rows, err := tx.Query(ctx, fmt.Sprintf(`SELECT %s FROM %s WHERE %s ORDER BY %s.id %s LIMIT %d`, columns, tables, from, of, order, ask.Limit), given...)
		if err != nil {
			return err
		}
		out, err = pgx.CollectRows(rows, read)
		return err
	})
	return out, total, peopleError(err)
}

// ForeseenSchedules lists an environment's schedules as a forecast needs them, without their work and what their last runs
// took, at most so many; more says that there are others.
func (w *World) ForeseenSchedules(ctx context.Context, scope Scope, env int32, most int) (out []ScheduleRow, more bool, err error) {
	err = w.db.For(scope).Read(ctx, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, `SELECT s.env, s.id, s.name, s.rule::text, s.created_at, s.version, t.enabled, t.forced, t.last_end, t.profile::text,
				coalesce((SELECT e.freeze_windows::text FROM environments e WHERE e.env = s.env), '[]')
			FROM schedules s JOIN schedule_states t ON t.env = s.env AND t.id = s.id WHERE s.env = $1 ORDER BY s.id LIMIT $2`, env, most+1)
		if err != nil {
			return err
		}
		out, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (v ScheduleRow, err error) {
			var rule, profile, freezes string
			s := &v.State
			err = row.Scan(&v.Env, (*[16]byte)(&v.ID), &v.Name, &rule, &v.CreatedAt, &v.Version, &s.Enabled, &s.Forced, &s.LastEnd, &profile, &freezes)
			s.Env, s.ID = v.Env, v.ID
			for text, into := range map[string]any{rule: &v.Rule, profile: &s.Profile, freezes: &v.Freezes} { // any order: each on its own
				if err == nil {
					err = json.Unmarshal([]byte(text), into)
				}
			}
			return v, err
		})
		return err
	})
	if len(out) > most {
		return out[:most], true, err
	}
	return out, false, err
}
