-- Purpose: what passed under each rate limit in the slices of its time before the last that did, summed up by slices of that time.
--          Index: rate_limits_pkey, then rate_passes_pkey from the end. Locks: none.
-- $1 slices
SELECT l.env, l.key, max(p.at), sum(p.n)::bigint
FROM rate_limits l
CROSS JOIN LATERAL (
    SELECT p.at FROM rate_passes p WHERE p.env = l.env AND p.key = l.key ORDER BY p.env DESC, p.key DESC, p.batch DESC LIMIT 1
) newest
CROSS JOIN LATERAL (SELECT greatest(1, l.per_seconds * 1000000 / $1) AS length) slice
CROSS JOIN LATERAL (
    SELECT p.at, p.n FROM rate_passes p WHERE p.env = l.env AND p.key = l.key AND p.batch >= l.from_batch AND p.n > 0 OFFSET 0
) p
WHERE p.at / slice.length >= (newest.at - l.per_seconds * 1000000) / slice.length
GROUP BY l.env, l.key, p.at / slice.length
ORDER BY l.env, l.key, max(p.at)
