-- Purpose: what a batch lets pass under rate limits. Index: rate_passes_pkey. Locks: the new rows.
-- $1 environments, $2 keys, $3 batch, $4 moments, $5 how many, $6 credits
INSERT INTO rate_passes (env, key, batch, at, n, credit)
SELECT env, key, $3, at, n, credit FROM unnest($1::int[], $2::text[], $4::bigint[], $5::bigint[], $6::bigint[]) r (env, key, at, n, credit)
