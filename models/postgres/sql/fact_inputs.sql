-- Purpose: what was submitted, for the retry policy in it. Index: specs_pkey, overrides_pkey. Locks: none.
-- $1 environments, $2 ids
SELECT s.env, s.id, coalesce(o.input, s.input) FROM unnest($1::int[], $2::uuid[]) r (env, id)
JOIN specs s ON s.env = r.env AND s.id = r.id LEFT JOIN overrides o ON o.env = s.env AND o.task = s.id
