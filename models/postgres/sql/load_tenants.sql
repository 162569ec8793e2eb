-- Purpose: all tenants. Index: none. Locks: none.
SELECT number, id, slug, name, weight, timezone, suspended, created_at, updated_at, version FROM tenants ORDER BY number
