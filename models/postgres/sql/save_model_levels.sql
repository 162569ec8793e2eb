-- Purpose: what is left of models' tokens a minute. Index: model_levels_pkey. Locks: the saved rows.
-- $1 models.ModelLevel as JSON
INSERT INTO model_levels (tenant, model, credit, at)
SELECT * FROM json_to_recordset($1::json) AS r (tenant int, model text, credit bigint, at bigint)
ON CONFLICT (tenant, model) DO UPDATE SET credit = EXCLUDED.credit, at = EXCLUDED.at
