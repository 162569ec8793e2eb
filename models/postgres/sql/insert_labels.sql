-- Purpose: labels of new tasks.
-- Index:   none is read.
-- Locks:   the new rows.
-- $1 rows
INSERT INTO labels (env, task, key, value) SELECT env, task, key, value FROM unnest($1::label_wire[])
