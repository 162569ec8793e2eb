-- Purpose: models, whole rows. Index: models_pkey. Locks: the saved rows.
-- $1 models.Model as JSON
INSERT INTO models (tenant, name, provider, task_types, input_micro, output_micro, cached_micro, context_tokens, quality, latency_ms,
    vram_mb, batch_discount, off_peak, fallbacks, max_concurrent, tokens_per_minute, enabled, created_at, updated_at, version)
SELECT tenant, name, provider, coalesce(task_types, '{}'), input_micro, output_micro, cached_micro, context_tokens, coalesce(quality, '{}'), latency_ms,
    vram_mb, batch_discount, coalesce(off_peak, '[]'), coalesce(fallbacks, '{}'), max_concurrent, tokens_per_minute, enabled, created_at, updated_at, version
FROM json_to_recordset($1::json) AS r (tenant int, name text, provider text, task_types text[], input_micro bigint, output_micro bigint,
    cached_micro bigint, context_tokens bigint, quality jsonb, latency_ms bigint, vram_mb bigint, batch_discount float8, off_peak jsonb,
    fallbacks text[], max_concurrent bigint, tokens_per_minute bigint, enabled boolean, created_at bigint, updated_at bigint, version bigint)
ON CONFLICT (tenant, name) DO UPDATE SET provider = EXCLUDED.provider, task_types = EXCLUDED.task_types, input_micro = EXCLUDED.input_micro,
    output_micro = EXCLUDED.output_micro, cached_micro = EXCLUDED.cached_micro, context_tokens = EXCLUDED.context_tokens,
    quality = EXCLUDED.quality, latency_ms = EXCLUDED.latency_ms, vram_mb = EXCLUDED.vram_mb, batch_discount = EXCLUDED.batch_discount,
    off_peak = EXCLUDED.off_peak, fallbacks = EXCLUDED.fallbacks, max_concurrent = EXCLUDED.max_concurrent,
    tokens_per_minute = EXCLUDED.tokens_per_minute, enabled = EXCLUDED.enabled, created_at = EXCLUDED.created_at,
    updated_at = EXCLUDED.updated_at, version = EXCLUDED.version
