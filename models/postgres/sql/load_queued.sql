-- Purpose: how many tasks of each environment are queued but not ready, staged ones of flipped bodies among them.
-- Index:   tasks_later alone, in order; stagings are few, then tasks_staged. Locks: none.
SELECT env, sum(n)::bigint FROM (
    SELECT env, count(*) AS n FROM tasks WHERE state IN (1, 2, 5) GROUP BY env
    UNION ALL
    SELECT s.env, count(*) FROM stagings s JOIN tasks t ON t.staging = s.id AND t.state = 0 WHERE s.flipped GROUP BY s.env
) c GROUP BY env ORDER BY env
