-- Purpose: all models. Index: none. Locks: none.
SELECT tenant, name, provider, task_types, input_micro, output_micro, cached_micro, context_tokens, quality::text, latency_ms, vram_mb,
    batch_discount, off_peak::text, fallbacks, max_concurrent, tokens_per_minute, enabled, created_at, updated_at, version
FROM models ORDER BY tenant, name COLLATE "C"
