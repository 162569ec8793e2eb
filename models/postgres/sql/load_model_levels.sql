-- Purpose: what was left of models' tokens a minute. Index: none. Locks: none.
SELECT tenant, model, credit, at FROM model_levels ORDER BY tenant, model COLLATE "C"
