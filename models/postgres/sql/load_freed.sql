-- Purpose: what waits for nothing any more. Index: tasks_freed. Locks: none.
SELECT :task(t) FROM tasks t WHERE t.state = 2 AND (t.remaining = 0 OR t.killed > 0) ORDER BY t.env, t.id
