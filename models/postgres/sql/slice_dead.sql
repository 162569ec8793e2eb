-- Purpose: the next dead letters of a fingerprint. Index: tasks_dead. Locks: none.
-- $1 environment, $2 fingerprint, $3 after, $4 until, $5 most
SELECT :task(t) FROM tasks t
WHERE t.env = $1 AND t.fingerprint = $2 AND t.state = 7 AND t.id > $3 AND t.id <= $4
ORDER BY t.env, t.fingerprint, t.id LIMIT $5
