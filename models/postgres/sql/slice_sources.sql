-- Purpose: the tasks outside a body that its next staged rows wait for, each once. Index: tasks_staged, edges_pkey by its
--          first two columns, tasks_pkey. Locks: none.
-- $1 environment, $2 staging, $3 after, $4 until, $5 most
SELECT :task(t) FROM (
    SELECT DISTINCT e.env, e.from_task FROM (
        SELECT t.env, t.id FROM tasks t
        WHERE t.staging = $2 AND t.state = 0 AND t.id > $3 AND t.id <= $4 AND t.env + 0 = $1
        ORDER BY t.id LIMIT $5
    ) n
    CROSS JOIN LATERAL (SELECT o.* FROM edges o WHERE o.env = n.env AND o.to_task = n.id AND o.state = 3) e
) s
JOIN tasks t ON t.env = s.env AND t.id = s.from_task
