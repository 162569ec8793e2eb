-- Purpose: the next tasks of a workflow that can still move, staged ones once their body has flipped.
-- Index:   tasks_workflow; stagings_pkey for staged rows. Locks: none.
-- $1 environment, $2 workflow, $3 after, $4 until, $5 most
SELECT :task(t) FROM tasks t
WHERE t.env = $1 AND t.workflow = $2 AND t.workflow IS NOT NULL AND t.id > $3 AND t.id <= $4 AND t.state + 0 < 8
    AND (t.state + 0 > 0 OR (SELECT s.flipped FROM stagings s WHERE s.id = t.staging))
ORDER BY t.env, t.workflow, t.id LIMIT $5
