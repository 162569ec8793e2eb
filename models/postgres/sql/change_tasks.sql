-- Purpose: rows after the batch, but for the two counters. A row that left the state or lease it was decided on makes the
--          count differ, and that raises.
-- Index:   tasks_pkey, by all its columns; "state + 0" is a guard that no partial index can prove.
-- Locks:   the changed rows.
-- $1 rows, $2 how many
WITH changed AS (
    UPDATE tasks t SET lane = c.lane, class = c.class, state = c.state, priority = c.priority, flags = c.flags,
        attempt = c.attempt, attempts_used = c.attempts_used, max_attempts = c.max_attempts, hard_seconds = c.hard_seconds,
        age_key = c.age_key, created_at = c.created_at, updated_at = c.updated_at, ready_at = c.ready_at, wake_at = c.wake_at,
        expires_at = c.expires_at, deadline = c.deadline, latest_start = c.latest_start,
        started_at = c.started_at, finished_at = c.finished_at, lease_until = c.lease_until, cards = c.cards, cancel_at = c.cancel_at, estimate_ms = c.estimate_ms, leases_lost = c.leases_lost, key_limit = c.key_limit,
        soft_seconds = c.soft_seconds, delay_seconds = c.delay_seconds, total_seconds = c.total_seconds, depth = c.depth,
        total_until = c.total_until, tokens = c.tokens, cost_micro = c.cost_micro, workflow = c.workflow, parent = c.parent,
        worker = c.worker, attempt_id = c.attempt_id, token = c.token, fingerprint = c.fingerprint, gate = c.gate,
        key = c.key, idem_key = c.idem_key, limit_key = c.limit_key, error_class = c.error_class,
        order_key = c.order_key, more_keys = c.more_keys
    FROM unnest($1::task_wire_4[]) c
    WHERE t.env = c.env AND t.id = c.id AND t.state + 0 = c.was AND t.token IS NOT DISTINCT FROM c.ref
    RETURNING 1
)
SELECT expect_rows('change_tasks', count(*), $2) FROM changed
