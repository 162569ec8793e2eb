-- Purpose: the next tasks that were listed for a bulk action. Index: bulk_items_pkey, tasks_pkey. Locks: none.
-- $1 environment, $2 list, $3 after, $4 until, $5 most
SELECT :task(t) FROM (
    SELECT b.env, b.task FROM bulk_items b WHERE b.cursor = $2 AND b.task > $3 AND b.task <= $4 AND b.env + 0 = $1
    ORDER BY b.cursor, b.task LIMIT $5
) b JOIN tasks t ON t.env = b.env AND t.id = b.task ORDER BY t.id
