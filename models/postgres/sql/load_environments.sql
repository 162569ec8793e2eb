-- Purpose: all environments. Index: none. Locks: none.
SELECT env, id, tenant, name, kind, paused, reason, created_at, updated_at, version FROM environments ORDER BY env
