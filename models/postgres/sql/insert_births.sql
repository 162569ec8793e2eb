-- Purpose: new rows of plain tasks, perhaps already running; those that have more are inserted by insert_tasks.
-- Index:   none is read.
-- Locks:   the new rows.
-- $1 rows
INSERT INTO tasks (env, lane, class, state, priority, flags, attempt, attempts_used, max_attempts, remaining, killed,
    hard_seconds, age_key, created_at, updated_at, id, ready_at, started_at, lease_until, cards, estimate_ms, worker,
    attempt_id, token, idem_key)
SELECT env, lane, class, state, priority, flags, attempt, attempts_used, max_attempts, 0, 0,
    hard_seconds, age_key, created_at, updated_at, id, ready_at, started_at, lease_until, cards, estimate_ms, worker,
    attempt_id, token, idem_key
FROM unnest($1::birth_wire[])
