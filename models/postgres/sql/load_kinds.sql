-- Purpose: all kinds. Index: none. Locks: none.
SELECT name, precedence, weight, min_share, elastic, yields_to, max_hold, updated_at, version FROM kinds ORDER BY name
