-- Purpose: what was presumed of attempts that have reported it. Index: presumed_spends_pkey. Locks: the rows.
-- $1 environments, $2 tasks, $3 tokens
DELETE FROM presumed_spends p USING unnest($1::int[], $2::uuid[], $3::uuid[]) r (env, task, token)
WHERE p.env = r.env AND p.task = r.task AND p.token = r.token
