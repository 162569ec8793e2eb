-- Purpose: schedules, whole rows, each a version of its own. Index: schedules_pkey, schedule_versions_pkey. Locks: the saved rows.
-- $1 models.Schedule as JSON
WITH saved AS (
INSERT INTO schedules (env, id, name, rule, task, given, by, created_at, updated_at, version)
SELECT "Env", "ID", "Name", "Rule", "Work"->'Task', "Work"->'Given', "By", "CreatedAt", "UpdatedAt", "Version"
FROM json_to_recordset($1::json) AS r ("Env" int, "ID" uuid, "Name" text, "Rule" json, "Work" json, "By" json,
    "CreatedAt" bigint, "UpdatedAt" bigint, "Version" bigint)
ON CONFLICT (env, id) DO UPDATE SET name = EXCLUDED.name, rule = EXCLUDED.rule, task = EXCLUDED.task, given = EXCLUDED.given,
    by = EXCLUDED.by, updated_at = EXCLUDED.updated_at, version = EXCLUDED.version
RETURNING *
)
INSERT INTO schedule_versions (env, schedule, version, name, rule, task, given, by, at)
SELECT env, id, version, name, rule, task, given, by, updated_at FROM saved
