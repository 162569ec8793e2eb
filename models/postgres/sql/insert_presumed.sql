-- Purpose: what attempts that were lost are taken to have spent. Index: presumed_spends_pkey. Locks: the new rows.
-- $1 models.Presumed as JSON
INSERT INTO presumed_spends (env, task, token, of_account, since, cost_micro, tokens)
SELECT "Env", "Task", "Token", "Of", "Since", "Micro", "Tokens"
FROM json_to_recordset($1::json) AS r ("Env" int, "Task" uuid, "Token" uuid, "Of" uuid, "Since" bigint, "Micro" bigint, "Tokens" bigint)
