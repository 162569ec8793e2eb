-- Purpose: new rows as they stand at the end of the batch, perhaps already running; staged ones carry their staging.
-- Index:   none is read.
-- Locks:   the new rows.
-- $1 rows
INSERT INTO tasks (env, lane, class, state, priority, flags, attempt, attempts_used, max_attempts, remaining, killed,
    hard_seconds, age_key, created_at, updated_at, id, ready_at, wake_at, expires_at, deadline, latest_start, started_at, finished_at,
    lease_until, cards, cancel_at, estimate_ms, leases_lost, key_limit, soft_seconds, delay_seconds,
    total_seconds, depth, total_until, tokens, cost_micro, workflow, parent, worker, attempt_id, token,
    fingerprint, staging, gate, key, idem_key, limit_key, error_class, order_key, more_keys)
SELECT env, lane, class, state, priority, flags, attempt, attempts_used, max_attempts, remaining, killed,
    hard_seconds, age_key, created_at, updated_at, id, ready_at, wake_at, expires_at, deadline, latest_start, started_at, finished_at,
    lease_until, cards, cancel_at, estimate_ms, leases_lost, key_limit, soft_seconds, delay_seconds,
    total_seconds, depth, total_until, tokens, cost_micro, workflow, parent, worker, attempt_id, token,
    fingerprint, ref, gate, key, idem_key, limit_key, error_class, order_key, more_keys
FROM unnest($1::task_wire_4[])
