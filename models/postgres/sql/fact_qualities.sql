-- Purpose: what sources said of results before. Index: qualities_pkey. Locks: none.
-- $1 environments, $2 ids, $3 sources
SELECT q.env, q.task, q.source, q.score FROM unnest($1::int[], $2::uuid[], $3::text[]) r (env, id, source)
JOIN qualities q ON q.env = r.env AND q.task = r.id AND q.source = r.source
