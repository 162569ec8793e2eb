-- Purpose: rate limits that are gone, with what passed under them. Index: rate_limits_pkey, rate_passes_pkey. Locks: the deleted rows.
-- $1 environments, $2 keys
WITH passes AS (
    DELETE FROM rate_passes p USING unnest($1::int[], $2::text[]) g (env, key) WHERE p.env = g.env AND p.key = g.key
)
DELETE FROM rate_limits l USING unnest($1::int[], $2::text[]) g (env, key) WHERE l.env = g.env AND l.key = g.key
