-- Purpose: the next children of a task that can still move and are not on their own (flag 32). Index: tasks_by_parent. Locks: none.
-- $1 environment, $2 parent, $3 after, $4 until, $5 most
SELECT :task(t) FROM tasks t
WHERE t.env = $1 AND t.parent = $2 AND t.parent IS NOT NULL AND t.id > $3 AND t.id <= $4 AND t.state + 0 < 8 AND t.flags & 32 = 0
ORDER BY t.env, t.parent, t.id LIMIT $5
