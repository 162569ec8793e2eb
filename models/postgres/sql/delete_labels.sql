-- Purpose: labels go, before new ones are written. Index: labels_task: a task has few. Locks: the deleted rows.
-- $1 rows
DELETE FROM labels l USING unnest($1::label_wire[]) t WHERE l.env = t.env AND l.key = t.key AND l.value = t.value AND l.task = t.task
