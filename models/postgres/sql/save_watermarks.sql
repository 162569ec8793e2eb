-- Purpose: watermarks that moved. Index: watermarks_pkey. Locks: the saved rows.
-- $1 environments, $2 names, $3 values, $4 versions, $5 moments
INSERT INTO watermarks (env, name, value, version, at) SELECT * FROM unnest($1::int[], $2::text[], $3::text[], $4::bigint[], $5::bigint[])
ON CONFLICT (env, name) DO UPDATE SET value = EXCLUDED.value, version = EXCLUDED.version, at = EXCLUDED.at
