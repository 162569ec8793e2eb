-- Purpose: attempts that ended, by the token they ran under. Index: attempts_pkey, by environment and task. Locks: none.
-- $1 environments, $2 tasks, $3 tokens
SELECT a.env, a.n, a.task, a.id, a.token, a.worker, a.started_at, a.finished_at, a.charged_ms, a.outcome, a.pool,
    a.worker_version, a.model, a.error, a.usage, a.result
FROM unnest($1::int[], $2::uuid[], $3::uuid[]) r (env, task, token)
JOIN attempts a ON a.env = r.env AND a.task = r.task AND a.token = r.token
