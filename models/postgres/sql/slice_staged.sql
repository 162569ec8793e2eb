-- Purpose: the next staged rows of a body. Index: tasks_staged. Locks: none.
-- $1 environment, $2 staging, $3 after, $4 until, $5 most
SELECT :task(t) FROM tasks t
WHERE t.staging = $2 AND t.state = 0 AND t.id > $3 AND t.id <= $4 AND t.env + 0 = $1
ORDER BY t.id LIMIT $5
