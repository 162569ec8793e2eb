-- Purpose: the next dead letters of a workflow. Index: tasks_workflow. Locks: none.
-- $1 environment, $2 workflow, $3 after, $4 until, $5 most
SELECT :task(t) FROM tasks t
WHERE t.env = $1 AND t.workflow = $2 AND t.workflow IS NOT NULL AND t.id > $3 AND t.id <= $4 AND t.state + 0 = 7
ORDER BY t.env, t.workflow, t.id LIMIT $5
