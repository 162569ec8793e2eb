-- Purpose: what stands of all schedules. Index: none. Locks: none.
SELECT env, id, enabled, paused_by, pause_reason, mark, until, last_run, last_outcome, last_for, last_late_ms, last_success,
    last_end, failures, forced, profile::text
FROM schedule_states ORDER BY env, id
