-- Purpose: rate limits, whole rows. Index: rate_limits_pkey. Locks: the saved rows.
-- $1 models.RateLimit as JSON
INSERT INTO rate_limits (env, key, most, per_seconds, burst, from_batch, created_at, updated_at, version)
SELECT "Env", "Key", "Limit", "PerSeconds", "Burst", "FromBatch", "CreatedAt", "UpdatedAt", "Version"
FROM json_to_recordset($1::json) AS r ("Env" int, "Key" text, "Limit" bigint, "PerSeconds" bigint, "Burst" bigint, "FromBatch" bigint,
    "CreatedAt" bigint, "UpdatedAt" bigint, "Version" bigint)
ON CONFLICT (env, key) DO UPDATE SET most = EXCLUDED.most, per_seconds = EXCLUDED.per_seconds, burst = EXCLUDED.burst, from_batch = EXCLUDED.from_batch,
    created_at = EXCLUDED.created_at, updated_at = EXCLUDED.updated_at, version = EXCLUDED.version
