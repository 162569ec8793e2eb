-- Purpose: how many ready, ungated tasks of each line want a key. Index: tasks_line_key alone. Locks: none.
SELECT lane, env, class, limit_key, count(*), max(key_limit) FROM tasks WHERE state = 3 AND gate IS NULL AND limit_key IS NOT NULL
GROUP BY lane, env, class, limit_key ORDER BY lane, env, class, limit_key
