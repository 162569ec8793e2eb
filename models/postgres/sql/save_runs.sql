-- Purpose: runs of schedules. Index: schedule_runs_pkey, schedule_runs_moment. Locks: the saved rows.
-- $1 models.Run as JSON
INSERT INTO schedule_runs (env, id, schedule, scheduled_for, origin, fired_at, outcome, cause, task, state, late_ms, finished_at,
    workflow, due_at, late_at)
SELECT "Env", "ID", "Schedule", "ScheduledFor", "Origin", "FiredAt", "Outcome", "Cause",
    nullif("Task", '00000000-0000-0000-0000-000000000000'), "State", "LateMS", nullif("FinishedAt", 0),
    nullif("Workflow", '00000000-0000-0000-0000-000000000000'), nullif("DueAt", 0), nullif("LateAt", 0)
FROM json_to_recordset($1::json) AS r ("Env" int, "ID" uuid, "Schedule" uuid, "ScheduledFor" bigint, "Origin" text,
    "FiredAt" bigint, "Outcome" text, "Cause" text, "Task" uuid, "State" smallint, "LateMS" bigint, "FinishedAt" bigint,
    "Workflow" uuid, "DueAt" bigint, "LateAt" bigint)
ON CONFLICT (env, id) DO UPDATE SET fired_at = EXCLUDED.fired_at, outcome = EXCLUDED.outcome, cause = EXCLUDED.cause,
    task = EXCLUDED.task, state = EXCLUDED.state, late_ms = EXCLUDED.late_ms, finished_at = EXCLUDED.finished_at,
    workflow = EXCLUDED.workflow, due_at = EXCLUDED.due_at, late_at = EXCLUDED.late_at
