-- Purpose: what operators and runs made of schedules. Index: schedule_states_pkey. Locks: the saved rows.
-- $1 models.ScheduleState as JSON
INSERT INTO schedule_states (env, id, enabled, paused_by, pause_reason, mark, until, last_run, last_outcome, last_for, last_late_ms,
    last_success, last_end, failures, forced, profile)
SELECT * FROM json_to_recordset($1::json) AS r ("Env" int, "ID" uuid, "Enabled" boolean, "PausedBy" text, "PauseReason" text,
    "Mark" bigint, "Until" bigint, "LastRun" uuid, "LastOutcome" text, "LastFor" bigint, "LastLateMS" bigint,
    "LastSuccess" bigint, "LastEnd" bigint, "Failures" int, "Forced" boolean, "Profile" json)
ON CONFLICT (env, id) DO UPDATE SET enabled = EXCLUDED.enabled, paused_by = EXCLUDED.paused_by, pause_reason = EXCLUDED.pause_reason,
    mark = EXCLUDED.mark, until = EXCLUDED.until, last_run = EXCLUDED.last_run, last_outcome = EXCLUDED.last_outcome,
    last_for = EXCLUDED.last_for, last_late_ms = EXCLUDED.last_late_ms, last_success = EXCLUDED.last_success,
    last_end = EXCLUDED.last_end, failures = EXCLUDED.failures,
    forced = EXCLUDED.forced, profile = EXCLUDED.profile
