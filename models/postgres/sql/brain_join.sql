-- Purpose: a writer's new connection says which session the brain now is. Index: brain_pkey. Locks: the brain row.
-- $1 epoch
UPDATE brain SET renewed_at = clock_timestamp(), backend_pid = pg_backend_pid(),
    backend_start = (SELECT a.backend_start FROM pg_stat_get_activity(pg_backend_pid()) a)
WHERE cell = 1 AND epoch = $1 RETURNING epoch
