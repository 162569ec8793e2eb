-- Purpose: the dependencies that tasks still wait for, dead ones first; few of each.
-- Index:   edges_pkey, tasks_pkey. Locks: none.
-- $1 environments, $2 ids, $3 how many of each
SELECT r.env, r.id, b.task, b.key, b.state
FROM unnest($1::int[], $2::uuid[]) r (env, id)
CROSS JOIN LATERAL (
    SELECT DISTINCT f.state = 7 AS dead, f.id AS task, f.key, f.state
    FROM edges e
    CROSS JOIN LATERAL (SELECT t.id, t.key, t.state FROM tasks t WHERE t.env = e.env AND t.id = e.from_task OFFSET 0) f
    WHERE e.env = r.env AND e.to_task = r.id AND e.fires_on < 3 AND e.state = 0
    ORDER BY dead DESC, task LIMIT $3
) b
