-- Purpose: virtual times of fair queueing, saved every ten seconds.
-- Index:   virtual_times_pkey.
-- Locks:   the saved rows; HOT.
-- $1 pools, $2 kinds, $3 tenants, $4 times
INSERT INTO virtual_times (pool, kind, tenant, time)
SELECT * FROM unnest($1::text[], $2::smallint[], $3::int[], $4::float8[])
ON CONFLICT (pool, kind, tenant) DO UPDATE SET time = EXCLUDED.time
