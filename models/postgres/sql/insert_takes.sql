-- Purpose: the messages that runs took. Index: none is read. Locks: the new rows.
-- $1 environments, $2 runs, $3 numbers, $4 sources, $5 names, $6 first, $7 last, $8 counts, $9 bytes, $10 tasks
INSERT INTO takes (env, run, n, source, name, first, last, count, bytes, task)
SELECT env, run, n, source, name, first, last, count, bytes, nullif(task, '00000000-0000-0000-0000-000000000000')
FROM unnest($1::int[], $2::uuid[], $3::int[], $4::smallint[], $5::text[], $6::bigint[], $7::bigint[], $8::int[], $9::bigint[], $10::uuid[])
    AS r (env, run, n, source, name, first, last, count, bytes, task)
