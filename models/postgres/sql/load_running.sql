-- Purpose: what runs. Index: tasks_running. Locks: none.
SELECT :task(t) FROM tasks t WHERE t.state IN (4, 6) ORDER BY t.env, t.id
