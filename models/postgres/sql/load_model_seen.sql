-- Purpose: what was seen of models. Index: none. Locks: none.
SELECT tenant, type, model, judged, good, runs, tokens_in, tokens_out, tokens_cached, seconds
FROM model_seen ORDER BY tenant, type COLLATE "C", model COLLATE "C"
