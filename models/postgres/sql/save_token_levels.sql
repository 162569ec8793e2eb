-- Purpose: what is left of tenants' tokens, at most once a second. Index: token_levels_pkey. Locks: the saved rows.
-- $1 models.TokenLevel as JSON
INSERT INTO token_levels (tenant, credit, at)
SELECT * FROM json_to_recordset($1::json) AS r (tenant int, credit bigint, at bigint)
ON CONFLICT (tenant) DO UPDATE SET credit = EXCLUDED.credit, at = EXCLUDED.at
