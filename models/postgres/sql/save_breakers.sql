-- Purpose: breakers that opened, and those that shut again, whose rows go. Index: model_breakers_pkey. Locks: the saved rows.
-- $1 models.ModelBreaker as JSON
WITH r AS MATERIALIZED (
    SELECT * FROM json_to_recordset($1::json) AS r (tenant int, model text, opened int, until bigint, class text)
), shut AS (
    DELETE FROM model_breakers b USING r WHERE r.opened = 0 AND b.tenant = r.tenant AND b.model = r.model
)
INSERT INTO model_breakers (tenant, model, opened, until, class) SELECT tenant, model, opened, until, class FROM r WHERE opened > 0
ON CONFLICT (tenant, model) DO UPDATE SET opened = EXCLUDED.opened, until = EXCLUDED.until, class = EXCLUDED.class
