-- Purpose: how many ready, ungated tasks each line holds. Index: tasks_line alone, in order. Locks: none.
SELECT lane, env, class, count(*) FROM tasks WHERE state = 3 AND gate IS NULL GROUP BY lane, env, class ORDER BY lane, env, class
