-- Purpose: whole rows by key. Index: tasks_pkey, by all its columns. Locks: none.
-- $1 environments, $2 ids
SELECT :task(t) FROM unnest($1::int[], $2::uuid[]) r (env, id) JOIN tasks t ON t.env = r.env AND t.id = r.id
