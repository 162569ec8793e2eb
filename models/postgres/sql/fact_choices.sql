-- Purpose: which models were chosen last for tasks, and of what. Index: the newest of model_choices_pkey each. Locks: none.
-- $1 environments, $2 ids
SELECT c.env, c.task, c.n, c.at, c.asked, c.named, c.chosen, c.reason, c.failed
FROM unnest($1::int[], $2::uuid[]) r (env, id) CROSS JOIN LATERAL (
    SELECT * FROM model_choices c WHERE c.env = r.env AND c.task = r.id ORDER BY c.env DESC, c.task DESC, c.n DESC LIMIT 1
) c
