-- Purpose: ready, ungated tasks with more keys than one, or with an order. Index: tasks_standing. Locks: none.
SELECT lane, env, class, id, limit_key, key_limit, more_keys, flags & 4096 > 0, order_key FROM tasks
WHERE state = 3 AND gate IS NULL AND (more_keys IS NOT NULL OR order_key IS NOT NULL) ORDER BY env, id
