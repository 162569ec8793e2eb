-- Purpose: tenants, whole rows. Index: tenants_pkey. Locks: the saved rows.
-- $1 models.Tenant as JSON
INSERT INTO tenants (number, id, slug, name, weight, timezone, suspended, created_at, updated_at, version)
SELECT * FROM json_to_recordset($1::json) AS r ("Number" int, "ID" uuid, "Slug" text, "Name" text, "Weight" float8,
    "Timezone" text, "Suspended" boolean, "CreatedAt" bigint, "UpdatedAt" bigint, "Version" bigint)
ON CONFLICT (number) DO UPDATE SET id = EXCLUDED.id, slug = EXCLUDED.slug, name = EXCLUDED.name, weight = EXCLUDED.weight,
    timezone = EXCLUDED.timezone, suspended = EXCLUDED.suspended, created_at = EXCLUDED.created_at,
    updated_at = EXCLUDED.updated_at, version = EXCLUDED.version
