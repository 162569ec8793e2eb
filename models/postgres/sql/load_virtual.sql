-- Purpose: saved virtual times. Index: none. Locks: none.
SELECT pool, kind, tenant, time FROM virtual_times ORDER BY pool, kind, tenant
