-- Purpose: what those tasks waited for, as it ended; results that are too large together are left out.
-- Index:   edges_pkey, tasks_pkey, attempts_pkey. Locks: none.
-- $1 environments, $2 ids, $3 the most bytes of results
SELECT d.env, d.to_task, d.key, d.state, d.size > $3, CASE WHEN d.size <= $3 THEN d.result END
FROM (
    SELECT e.env, e.to_task, e.from_task, f.key, f.state, done.result,
        coalesce(sum(octet_length(done.result)) OVER (PARTITION BY e.env, e.to_task), 0)::bigint AS size
    FROM unnest($1::int[], $2::uuid[]) r (env, id)
    JOIN edges e ON e.env = r.env AND e.to_task = r.id AND e.fires_on < 3
    JOIN tasks f ON f.env = e.env AND f.id = e.from_task
    LEFT JOIN LATERAL (
        SELECT a.result FROM attempts a WHERE f.state + 0 = 8 AND a.env = f.env AND a.task = f.id AND a.outcome = 1
        ORDER BY a.n DESC LIMIT 1
    ) done ON true
) d
ORDER BY d.env, d.to_task, d.from_task
