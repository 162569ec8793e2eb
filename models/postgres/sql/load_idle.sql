-- Purpose: ordered tasks that hold their keys without running. Index: tasks_idle. Locks: none.
SELECT env, id, started_at, limit_key, key_limit, more_keys, flags & 4096 > 0 FROM tasks
WHERE state IN (5, 7) AND order_key IS NOT NULL ORDER BY env, id
