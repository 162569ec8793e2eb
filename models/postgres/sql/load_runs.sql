-- Purpose: runs whose work has not ended, as it stands, and those that wait. Index: schedule_runs_open,
-- schedule_runs_flows, schedules_pkey, tasks_pkey. Locks: none.
SELECT r.env, r.id, r.schedule, r.scheduled_for, r.origin, r.fired_at, r.outcome, r.cause, r.task, coalesce(t.state, r.state),
    r.late_ms, r.finished_at, r.workflow, r.due_at, r.late_at
FROM (
    SELECT * FROM schedule_runs WHERE finished_at IS NULL AND (task IS NOT NULL OR outcome = '')
    UNION ALL
    SELECT * FROM schedule_runs WHERE finished_at IS NULL AND workflow IS NOT NULL
) r
JOIN schedules s ON s.env = r.env AND s.id = r.schedule
LEFT JOIN tasks t ON t.env = r.env AND t.id = r.task
ORDER BY r.env, r.id
