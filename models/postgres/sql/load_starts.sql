-- Purpose: how many ready, ungated tasks of each line have a deadline. Index: tasks_line_start alone, in order. Locks: none.
SELECT lane, env, class, count(*) FROM tasks WHERE state = 3 AND gate IS NULL AND latest_start IS NOT NULL
GROUP BY lane, env, class ORDER BY lane, env, class
