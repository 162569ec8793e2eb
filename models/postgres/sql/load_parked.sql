-- Purpose: how many tasks of each line are parked behind a gate. Index: tasks_parked alone. Locks: none.
SELECT lane, env, class, gate, count(*), max(key_limit) FROM tasks WHERE state = 3 AND gate IS NOT NULL
GROUP BY env, gate, lane, class ORDER BY lane, env, class, gate
