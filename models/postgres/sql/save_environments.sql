-- Purpose: environments, whole rows. Index: environments_pkey. Locks: the saved rows.
-- $1 models.Environment as JSON
INSERT INTO environments (env, id, tenant, name, kind, paused, reason, created_at, updated_at, version, freeze_windows, closed_at)
SELECT "Env", "ID", "Tenant", "Name", "Kind", "Paused", "Reason", "CreatedAt", "UpdatedAt", "Version",
    CASE json_typeof("Freezes") WHEN 'array' THEN "Freezes"::jsonb ELSE '[]' END, coalesce("ClosedAt", 0)
FROM json_to_recordset($1::json) AS r ("Env" int, "ID" uuid, "Tenant" int, "Name" text, "Kind" text,
    "Paused" boolean, "Reason" text, "CreatedAt" bigint, "UpdatedAt" bigint, "Version" bigint, "Freezes" json,
    "ClosedAt" bigint)
ON CONFLICT (env) DO UPDATE SET id = EXCLUDED.id, tenant = EXCLUDED.tenant, name = EXCLUDED.name, kind = EXCLUDED.kind,
    paused = EXCLUDED.paused, reason = EXCLUDED.reason, created_at = EXCLUDED.created_at, updated_at = EXCLUDED.updated_at,
    version = EXCLUDED.version, freeze_windows = EXCLUDED.freeze_windows,
    closed_at = EXCLUDED.closed_at
