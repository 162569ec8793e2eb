-- Purpose: lanes that are held back. Index: holds_pkey. Locks: none.
SELECT lane, pool, env, since, task FROM holds ORDER BY lane, pool COLLATE "C"
