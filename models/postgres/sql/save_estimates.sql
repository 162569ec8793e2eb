-- Purpose: histograms of run times, saved now and then.
-- Index:   estimates_pkey.
-- Locks:   the saved rows; HOT.
-- $1 tenants, $2 classes, $3 histograms, $4 at
INSERT INTO estimates (tenant, class, counts, at)
SELECT tenant, class, counts, $4::bigint FROM unnest($1::int[], $2::int[], $3::bytea[]) r (tenant, class, counts)
ON CONFLICT (tenant, class) DO UPDATE SET counts = EXCLUDED.counts, at = EXCLUDED.at
