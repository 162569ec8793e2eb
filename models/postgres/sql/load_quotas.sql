-- Purpose: what tenants may hold and do at most. Index: none. Locks: none.
SELECT tenant, max_concurrent, max_queued, max_gpus, max_vram_mb, tokens_per_minute, requests_per_minute, max_schedules,
    min_interval_seconds, updated_at, version FROM quotas ORDER BY tenant
