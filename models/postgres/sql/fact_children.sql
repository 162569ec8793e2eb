-- Purpose: children by the key their parent gave them. Index: tasks_children. Locks: none.
-- $1 environments, $2 parents, $3 keys
SELECT :task(t) FROM unnest($1::int[], $2::uuid[], $3::text[]) r (env, parent, key)
CROSS JOIN LATERAL (
    SELECT * FROM tasks t WHERE t.env = r.env AND t.parent = r.parent AND t.key = r.key AND t.parent IS NOT NULL OFFSET 0
) t
