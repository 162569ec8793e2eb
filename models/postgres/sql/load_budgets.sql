-- Purpose: what tenants may spend. Index: budgets_pkey. Locks: none.
SELECT id, tenant, scope, env, name, period, timezone, limit_micro, limit_tokens, on_exhausted, alert_at, alerted_for, alerted,
    created_at, updated_at, version FROM budgets ORDER BY id
