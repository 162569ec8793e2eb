-- Purpose: signals not delivered yet. Index: none, there are few. Locks: none.
SELECT id, env, task, name, data FROM signals ORDER BY id
