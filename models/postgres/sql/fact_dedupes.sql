-- Purpose: who got a dedupe key last, as it stands. Index: dedupes_pkey, tasks_pkey. Locks: none.
-- $1 environments, $2 keys
SELECT d.key, d.while, d.ttl_seconds, :task(t) FROM unnest($1::int[], $2::text[]) r (env, key)
JOIN dedupes d ON d.env = r.env AND d.key = r.key
JOIN tasks t ON t.env = d.env AND t.id = d.task
