-- Purpose: what attempts that were lost are taken to have spent. Index: presumed_spends_pkey. Locks: none.
-- $1 environments, $2 tasks, $3 tokens
SELECT p.env, p.task, p.token, p.of_account, p.since, p.cost_micro, p.tokens
FROM unnest($1::int[], $2::uuid[], $3::uuid[]) r (env, task, token)
JOIN presumed_spends p ON p.env = r.env AND p.task = r.task AND p.token = r.token
ORDER BY p.of_account
