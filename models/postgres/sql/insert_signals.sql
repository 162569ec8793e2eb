-- Purpose: signals to running tasks. Index: signals_pkey. Locks: the new rows.
-- $1 ids, $2 environments, $3 tasks, $4 names, $5 data
INSERT INTO signals (id, env, task, name, data) SELECT * FROM unnest($1::uuid[], $2::int[], $3::uuid[], $4::text[], $5::text[])
