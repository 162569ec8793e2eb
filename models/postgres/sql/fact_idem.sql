-- Purpose: who holds a business key. Index: tasks_idem. Locks: none.
-- $1 environments, $2 keys
SELECT :task(t) FROM unnest($1::int[], $2::text[]) r (env, key)
CROSS JOIN LATERAL ( -- a subquery of its own, so that a fresh index is not read whole
    SELECT * FROM tasks t WHERE t.env = r.env AND t.idem_key = r.key AND t.idem_key IS NOT NULL AND t.state BETWEEN 1 AND 8 OFFSET 0
) t
