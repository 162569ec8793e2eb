-- Purpose: saved virtual times. Index: none. Locks: none.
SELECT pool, kind, tenant, time, span, saved_at FROM virtual_times ORDER BY pool, kind, tenant
