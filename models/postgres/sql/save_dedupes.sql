-- Purpose: who got a dedupe key last. Index: dedupes_pkey. Locks: the saved rows.
-- $1 models.Dedupe as JSON
INSERT INTO dedupes (env, key, task, while, ttl_seconds)
SELECT * FROM json_to_recordset($1::json) AS r ("Env" int, "Key" text, "Task" uuid, "While" smallint, "TTLSeconds" int)
ON CONFLICT (env, key) DO UPDATE SET task = EXCLUDED.task, while = EXCLUDED.while, ttl_seconds = EXCLUDED.ttl_seconds
