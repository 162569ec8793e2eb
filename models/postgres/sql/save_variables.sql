-- Purpose: the variables of environments, all of one in a row. Index: variables_pkey. Locks: the saved rows.
-- $1 models.Variables as JSON
INSERT INTO variables (env, vars, version, at)
SELECT "Env", "Vars", "Version", "At" FROM json_to_recordset($1::json) AS r ("Env" int, "Vars" json, "Version" bigint, "At" bigint)
ON CONFLICT (env) DO UPDATE SET vars = EXCLUDED.vars, version = EXCLUDED.version, at = EXCLUDED.at
