-- Purpose: what was submitted, for the retry policy in it. Index: specs_pkey. Locks: none.
-- $1 environments, $2 ids
SELECT s.env, s.id, s.input FROM unnest($1::int[], $2::uuid[]) r (env, id) JOIN specs s ON s.env = r.env AND s.id = r.id
