-- Purpose: by what forecasts were off, saved every five minutes at most. Index: forecast_corrections_pkey. Locks: the saved rows; HOT.
-- $1 pools, $2 kinds, $3 factors, $4 at
INSERT INTO forecast_corrections (pool, kind, factors, at)
SELECT pool, kind, factors, $4::bigint FROM unnest($1::text[], $2::smallint[], $3::bytea[]) r (pool, kind, factors)
ON CONFLICT (pool, kind) DO UPDATE SET factors = EXCLUDED.factors, at = EXCLUDED.at
