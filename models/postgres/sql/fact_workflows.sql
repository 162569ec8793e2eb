-- Purpose: workflows with their counts taken from the tasks; staged rows count once their body has flipped.
-- Index:   workflows_pkey, tasks_workflow; stagings_pkey for staged rows. Locks: none.
-- $1 environments, $2 ids
SELECT w.env, w.id, w.name, w.state, c.counts, w.cancelling, w.priority, w.input, w.created_at, w.finished_at, w.updated_at,
    w.stops, w.over, w.gate, w.budget, w.depth, w.grown, w.ends_at, w.rerun_of, u.cost, u.tokens, u.attempts, u.retries, w.items
FROM unnest($1::int[], $2::uuid[]) r (env, id)
JOIN workflows w ON w.env = r.env AND w.id = r.id
CROSS JOIN LATERAL (
    SELECT ARRAY[count(*) FILTER (WHERE state = 0 AND (SELECT s.flipped FROM stagings s WHERE s.id = t.staging)), count(*) FILTER (WHERE state = 1), count(*) FILTER (WHERE state = 2),
        count(*) FILTER (WHERE state = 3), count(*) FILTER (WHERE state = 4), count(*) FILTER (WHERE state = 5),
        count(*) FILTER (WHERE state = 6), count(*) FILTER (WHERE state = 7), count(*) FILTER (WHERE state = 8),
        count(*) FILTER (WHERE state = 9), count(*) FILTER (WHERE state = 10), count(*) FILTER (WHERE state = 11),
        count(*) FILTER (WHERE state = 12)]::int[] AS counts
    FROM tasks t WHERE t.env = w.env AND t.workflow = w.id AND t.workflow IS NOT NULL
) c
CROSS JOIN LATERAL (
    SELECT least(coalesce(sum(s.cost_micro), 0), 2305843009213693952)::bigint AS cost, least(coalesce(sum(s.tokens), 0), 2305843009213693952)::bigint AS tokens, sum(s.attempts)::bigint AS attempts, sum(s.retries)::bigint AS retries
    FROM flow_spends s WHERE s.env = w.env AND s.workflow = w.id
) u
