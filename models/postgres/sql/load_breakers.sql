-- Purpose: breakers that are not shut. Index: none. Locks: none.
SELECT tenant, model, opened, until, class FROM model_breakers ORDER BY tenant, model COLLATE "C"
