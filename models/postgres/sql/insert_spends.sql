-- Purpose: what a batch adds to what workflows used. Index: flow_spends_pkey. Locks: the new rows.
-- $1 models.FlowSpend as JSON, $2 batch
INSERT INTO flow_spends (env, workflow, batch, cost_micro, tokens, attempts, retries)
SELECT "Env", "Workflow", $2, "CostMicro", "Tokens", "Attempts", "Retries"
FROM json_to_recordset($1::json) AS r ("Env" int, "Workflow" uuid, "CostMicro" bigint, "Tokens" bigint, "Attempts" bigint, "Retries" bigint)
