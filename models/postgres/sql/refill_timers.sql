-- Purpose: rows that time alone changes next. Index: tasks_timer. Locks: none.
-- $1 after, $2 until, $3 most
SELECT :task(t) FROM tasks t
WHERE LEAST(t.wake_at, t.expires_at) > $1 AND LEAST(t.wake_at, t.expires_at) <= $2
  AND t.state IN (1, 2, 3, 5) AND LEAST(t.wake_at, t.expires_at) IS NOT NULL
ORDER BY LEAST(t.wake_at, t.expires_at), t.id LIMIT $3
