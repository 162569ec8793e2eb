-- Purpose: runs whose work has not ended, as it stands, and those that wait. Index: schedule_runs_open, schedules_pkey,
-- tasks_pkey. Locks: none.
SELECT r.env, r.id, r.schedule, r.scheduled_for, r.origin, r.fired_at, r.outcome, r.cause, r.task, coalesce(t.state, r.state),
    r.late_ms, r.finished_at
FROM schedule_runs r
JOIN schedules s ON s.env = r.env AND s.id = r.schedule
LEFT JOIN tasks t ON t.env = r.env AND t.id = r.task
WHERE r.finished_at IS NULL AND (r.task IS NOT NULL OR r.outcome = '')
ORDER BY r.env, r.id
