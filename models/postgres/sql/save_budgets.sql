-- Purpose: budgets, whole rows. Index: budgets_pkey. Locks: the saved rows.
-- $1 models.Budget as JSON
INSERT INTO budgets (id, tenant, scope, env, name, period, timezone, limit_micro, limit_tokens, on_exhausted, alert_at, alerted_for,
    alerted, created_at, updated_at, version)
SELECT "ID", "Tenant", "Scope", "Env", "Name", "Period", "Timezone", "LimitMicro", "LimitTokens", "OnExhausted",
    coalesce("AlertAt", '{}'), "AlertedFor", "Alerted", "CreatedAt", "UpdatedAt", "Version"
FROM json_to_recordset($1::json) AS r ("ID" uuid, "Tenant" int, "Scope" smallint, "Env" int, "Name" text, "Period" smallint, "Timezone" text,
    "LimitMicro" bigint, "LimitTokens" bigint, "OnExhausted" smallint, "AlertAt" float8[], "AlertedFor" bigint, "Alerted" float8,
    "CreatedAt" bigint, "UpdatedAt" bigint, "Version" bigint)
ON CONFLICT (id) DO UPDATE SET timezone = EXCLUDED.timezone, limit_micro = EXCLUDED.limit_micro, limit_tokens = EXCLUDED.limit_tokens,
    on_exhausted = EXCLUDED.on_exhausted, alert_at = EXCLUDED.alert_at, alerted_for = EXCLUDED.alerted_for, alerted = EXCLUDED.alerted,
    updated_at = EXCLUDED.updated_at, version = EXCLUDED.version
