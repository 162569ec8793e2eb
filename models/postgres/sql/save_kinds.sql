-- Purpose: kinds, whole rows. Index: kinds_pkey. Locks: the saved rows.
-- $1 models.Kind as JSON
INSERT INTO kinds (name, precedence, weight, min_share, elastic, yields_to, max_hold, updated_at, version)
SELECT "Name", "Precedence", "Weight", "MinShare", "Elastic", coalesce("YieldsTo", '{}'), "MaxHold", "UpdatedAt", "Version"
FROM json_to_recordset($1::json) AS r ("Name" smallint, "Precedence" int, "Weight" float8, "MinShare" float8,
    "Elastic" boolean, "YieldsTo" text[], "MaxHold" int, "UpdatedAt" bigint, "Version" bigint)
ON CONFLICT (name) DO UPDATE SET precedence = EXCLUDED.precedence, weight = EXCLUDED.weight, min_share = EXCLUDED.min_share,
    elastic = EXCLUDED.elastic, yields_to = EXCLUDED.yields_to, max_hold = EXCLUDED.max_hold,
    updated_at = EXCLUDED.updated_at, version = EXCLUDED.version
