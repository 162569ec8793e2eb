-- Purpose: which models were chosen and why. Index: model_choices_pkey. Locks: the new rows.
-- $1 models.Choice as JSON
INSERT INTO model_choices (env, task, n, at, asked, named, chosen, reason, failed, ranking)
SELECT env, task, n, at, asked::text, named, chosen, reason, coalesce(failed, '{}'), coalesce(ranking::text, '[]')
FROM json_to_recordset($1::json) AS r (env int, task uuid, n int, at bigint, asked json, named text, chosen text, reason text, failed text[], ranking json)
