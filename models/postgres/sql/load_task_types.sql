-- Purpose: what environments say of task types, without their schemas. Index: none. Locks: none.
SELECT env, type, schema, max_concurrent, paused, reason, updated_at, version FROM task_types ORDER BY env, type
