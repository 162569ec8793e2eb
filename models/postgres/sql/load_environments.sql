-- Purpose: all environments. Index: none. Locks: none.
SELECT env, id, tenant, name, kind, paused, reason, created_at, updated_at, version, freeze_windows::text, closed_at FROM environments ORDER BY env
