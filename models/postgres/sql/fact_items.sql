-- Purpose: how far the items of tasks are. Index: task_items_pkey. Locks: none.
-- $1 environments, $2 ids
SELECT i.env, i.task, i.workflow, i.first, i.total, i.done, i.used, i.remain
FROM unnest($1::int[], $2::uuid[]) r (env, id) JOIN task_items i ON i.env = r.env AND i.task = r.id
