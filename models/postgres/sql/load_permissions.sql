-- Purpose: what tasks of environments may ask for. Index: none. Locks: none.
SELECT env, granted, updated_at, version FROM permissions ORDER BY env
