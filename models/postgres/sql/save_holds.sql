-- Purpose: lanes that are held back in a pool, and the first of their tasks. Index: holds_pkey. Locks: the saved rows.
-- $1 lanes, $2 pools, $3 environments, $4 since, $5 tasks
INSERT INTO holds (lane, pool, env, since, task)
SELECT * FROM unnest($1::int[], $2::text[], $3::int[], $4::bigint[], $5::uuid[])
ON CONFLICT (lane, pool) DO UPDATE SET since = EXCLUDED.since, task = EXCLUDED.task
