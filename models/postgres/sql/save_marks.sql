-- Purpose: how far feeds were read. Index: feed_marks_pkey. Locks: the saved rows.
-- $1 environments, $2 sources, $3 names, $4 schedules, $5 after, $6 moments
INSERT INTO feed_marks (env, source, name, schedule, after, at)
SELECT * FROM unnest($1::int[], $2::smallint[], $3::text[], $4::uuid[], $5::bigint[], $6::bigint[])
ON CONFLICT (env, source, name, schedule) DO UPDATE SET after = EXCLUDED.after, at = EXCLUDED.at
