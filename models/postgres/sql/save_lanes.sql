-- Purpose: lanes, whole rows, and the largest number a lane ever had. Index: lanes_pkey, highest_pkey. Locks: the saved rows.
-- $1 models.Lane as JSON
WITH saved AS (
INSERT INTO lanes (number, env, name, kind, weight, max_concurrent, high_water, task_types, paused, draining, reason, first,
    description, owner, runbook_url, created_at, updated_at, version, open_windows, elastic, yields_to, max_hold, defaults)
SELECT "Number", "Env", "Name", "Kind", "Weight", "MaxConcurrent", "HighWater", coalesce("TaskTypes", '{}'), "Paused",
    "Draining", "Reason", "First", "Description", "Owner", "RunbookURL", "CreatedAt", "UpdatedAt", "Version",
    CASE WHEN json_typeof("OpenWindows") = 'array' THEN "OpenWindows"::jsonb ELSE '[]' END,
    "Elastic", coalesce("YieldsTo", '{}'), "MaxHold", "Defaults"
FROM json_to_recordset($1::json) AS r ("Number" int, "Env" int, "Name" text, "Kind" smallint, "Weight" float8,
    "MaxConcurrent" int, "HighWater" int, "TaskTypes" text[], "Paused" boolean, "Draining" boolean, "Reason" text,
    "First" boolean, "Description" text, "Owner" text, "RunbookURL" text, "CreatedAt" bigint, "UpdatedAt" bigint,
    "Version" bigint, "OpenWindows" json, "Elastic" boolean, "YieldsTo" text[], "MaxHold" int, "Defaults" jsonb)
ON CONFLICT (number) DO UPDATE SET env = EXCLUDED.env, name = EXCLUDED.name, kind = EXCLUDED.kind, weight = EXCLUDED.weight,
    max_concurrent = EXCLUDED.max_concurrent, high_water = EXCLUDED.high_water, task_types = EXCLUDED.task_types,
    paused = EXCLUDED.paused, draining = EXCLUDED.draining, reason = EXCLUDED.reason, first = EXCLUDED.first,
    description = EXCLUDED.description, owner = EXCLUDED.owner, runbook_url = EXCLUDED.runbook_url,
    created_at = EXCLUDED.created_at, updated_at = EXCLUDED.updated_at, version = EXCLUDED.version,
    open_windows = EXCLUDED.open_windows, elastic = EXCLUDED.elastic, yields_to = EXCLUDED.yields_to,
    max_hold = EXCLUDED.max_hold, defaults = EXCLUDED.defaults
RETURNING number
)
INSERT INTO highest (name, number) SELECT 'lane', max(number) FROM saved
ON CONFLICT (name) DO UPDATE SET number = greatest(highest.number, EXCLUDED.number)
