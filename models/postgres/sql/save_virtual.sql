-- Purpose: virtual times of fair queueing, saved every ten seconds.
-- Index:   virtual_times_pkey.
-- Locks:   the saved rows; HOT.
-- $1 pools, $2 kinds, $3 tenants, $4 times, $5 spans, $6 when
INSERT INTO virtual_times (pool, kind, tenant, time, span, saved_at)
SELECT v.*, $6 FROM unnest($1::text[], $2::smallint[], $3::int[], $4::float8[], $5::float8[]) AS v
ON CONFLICT (pool, kind, tenant) DO UPDATE SET time = EXCLUDED.time, span = EXCLUDED.span, saved_at = EXCLUDED.saved_at
