-- Purpose: what conditions are judged by, but for what the tasks waited for. Index: specs_pkey, overrides_pkey. Locks: none.
-- $1 environments, $2 ids
SELECT s.env, s.id, coalesce(o.input, s.input), coalesce(o.payload, s.payload)
FROM unnest($1::int[], $2::uuid[]) r (env, id)
JOIN specs s ON s.env = r.env AND s.id = r.id
LEFT JOIN overrides o ON o.env = s.env AND o.task = s.id
