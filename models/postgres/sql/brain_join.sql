-- Purpose: a writer's new connection says which session the brain now is. Index: brain_pkey. Locks: the brain row.
-- $1 epoch, $2 when this session began, µs
UPDATE brain SET renewed_at = clock_timestamp(), backend_pid = pg_backend_pid(),
    backend_start = timestamptz 'epoch' + $2::bigint * interval '1 microsecond'
WHERE cell = 1 AND epoch = $1 RETURNING epoch
