-- Purpose: budgets that are deleted, with what was spent of them. Index: budgets_pkey, budget_spends_pkey. Locks: the rows.
-- $1 ids
WITH spends AS (DELETE FROM budget_spends s USING unnest($1::uuid[]) g (id) WHERE s.budget = g.id)
DELETE FROM budgets b USING unnest($1::uuid[]) g (id) WHERE b.id = g.id
