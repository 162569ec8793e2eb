-- Purpose: rate limits with what their buckets held last. Index: rate_limits_pkey, then the newest of rate_passes_pkey each. Locks: none.
SELECT l.env, l.key, l.most, l.per_seconds, l.burst, l.from_batch, l.created_at, l.updated_at, l.version, p.credit, p.at
FROM rate_limits l LEFT JOIN LATERAL (
    SELECT * FROM rate_passes p WHERE p.env = l.env AND p.key = l.key ORDER BY p.env DESC, p.key DESC, p.batch DESC LIMIT 1
) p ON true
ORDER BY l.env, l.key
