-- Purpose: attempts that ended, with their results.
-- Index:   none is read.
-- Locks:   the new rows.
-- $1 rows
INSERT INTO attempts (env, n, task, id, token, worker, started_at, finished_at, charged_ms, outcome, pool, worker_version,
    model, error, usage, result)
SELECT env, n, task, id, token, worker, started_at, finished_at, charged_ms, outcome, pool, worker_version,
    model, error, usage, result
FROM unnest($1::attempt_wire[])
