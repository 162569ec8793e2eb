-- Purpose: flipped bodies of which rows are still staged. Index: stagings_pkey, tasks_staged for one row. Locks: none.
SELECT s.id, s.env, s.tasks, s.at, s.flipped FROM stagings s
CROSS JOIN LATERAL (SELECT FROM tasks t WHERE t.staging = s.id AND t.state = 0 LIMIT 1) t
WHERE s.flipped ORDER BY s.id
