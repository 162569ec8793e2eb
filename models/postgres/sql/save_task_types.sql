-- Purpose: what environments say of task types, whole rows. Index: task_types_pkey. Locks: the saved rows.
-- $1 models.TaskType as JSON
INSERT INTO task_types (env, type, input_schema, schema, max_concurrent, paused, reason, updated_at, version)
SELECT env, type, input_schema::text, coalesce(schema, 0), max_concurrent, paused, coalesce(reason, ''), updated_at, version
FROM json_to_recordset($1::json) AS r (env int, type text, input_schema json, schema bigint, max_concurrent bigint,
    paused boolean, reason text, updated_at bigint, version bigint)
ON CONFLICT (env, type) DO UPDATE SET input_schema = EXCLUDED.input_schema, schema = EXCLUDED.schema,
    max_concurrent = EXCLUDED.max_concurrent, paused = EXCLUDED.paused, reason = EXCLUDED.reason,
    updated_at = EXCLUDED.updated_at, version = EXCLUDED.version
