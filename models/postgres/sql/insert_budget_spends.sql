-- Purpose: what a batch adds to what was spent of budgets. Index: budget_spends_pkey. Locks: the new rows.
-- $1 models.BudgetSpend as JSON, $2 batch
INSERT INTO budget_spends (budget, since, batch, tenant, cost_micro, tokens)
SELECT "Budget", "Since", $2, "Tenant", "Micro", "Tokens"
FROM json_to_recordset($1::json) AS r ("Budget" uuid, "Since" bigint, "Tenant" int, "Micro" bigint, "Tokens" bigint)
