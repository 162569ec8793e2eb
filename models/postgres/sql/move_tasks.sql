-- Purpose: rows of which only that changed which starts and ends move. A row that left the state or lease it was decided
--          on makes the count differ, and that raises.
-- Index:   tasks_pkey, by all its columns; "state + 0" is a guard that no partial index can prove.
-- Locks:   the changed rows.
-- $1 rows, $2 how many
WITH changed AS (
    UPDATE tasks t SET state = c.state, attempt = c.attempt, attempts_used = c.attempts_used, updated_at = c.updated_at,
        started_at = c.started_at, finished_at = c.finished_at, lease_until = c.lease_until, cards = c.cards,
        worker = c.worker, attempt_id = c.attempt_id, token = c.token
    FROM unnest($1::move_wire[]) c
    WHERE t.env = c.env AND t.id = c.id AND t.state + 0 = c.was AND t.token IS NOT DISTINCT FROM c.ref
    RETURNING 1
)
SELECT expect_rows('move_tasks', count(*), $2) FROM changed
