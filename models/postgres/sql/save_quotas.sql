-- Purpose: tenants' quotas, whole rows. Index: quotas_pkey. Locks: the saved rows.
-- $1 models.Quotas as JSON
INSERT INTO quotas (tenant, max_concurrent, max_queued, max_gpus, max_vram_mb, tokens_per_minute, requests_per_minute,
    max_schedules, min_interval_seconds, updated_at, version)
SELECT * FROM json_to_recordset($1::json) AS r (tenant int, max_concurrent bigint, max_queued bigint, max_gpus bigint,
    max_vram_mb bigint, tokens_per_minute bigint, requests_per_minute bigint, max_schedules bigint,
    min_schedule_interval_seconds bigint, updated_at bigint, version bigint)
ON CONFLICT (tenant) DO UPDATE SET max_concurrent = EXCLUDED.max_concurrent, max_queued = EXCLUDED.max_queued,
    max_gpus = EXCLUDED.max_gpus, max_vram_mb = EXCLUDED.max_vram_mb, tokens_per_minute = EXCLUDED.tokens_per_minute,
    requests_per_minute = EXCLUDED.requests_per_minute, max_schedules = EXCLUDED.max_schedules,
    min_interval_seconds = EXCLUDED.min_interval_seconds, updated_at = EXCLUDED.updated_at, version = EXCLUDED.version
