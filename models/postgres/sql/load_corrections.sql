-- Purpose: by what forecasts were off. Index: forecast_corrections_pkey. Locks: none.
SELECT pool, kind, factors FROM forecast_corrections ORDER BY pool, kind
