-- Purpose: all schedules, without what they do. Index: none. Locks: none.
SELECT env, id, name, rule, by, created_at, updated_at, version FROM schedules ORDER BY env, id
