-- Purpose: what tasks of environments may ask for, whole rows. Index: permissions_pkey. Locks: the saved rows.
-- $1 models.Grants as JSON
INSERT INTO permissions (env, granted, updated_at, version)
SELECT env, coalesce(granted, '{}'), updated_at, version
FROM json_to_recordset($1::json) AS r (env int, granted text[], updated_at bigint, version bigint)
ON CONFLICT (env) DO UPDATE SET granted = EXCLUDED.granted, updated_at = EXCLUDED.updated_at, version = EXCLUDED.version
