-- Purpose: edges of new tasks; their counters are already in the rows.
-- Index:   none is read.
-- Locks:   the new rows.
-- $1 rows
INSERT INTO edges (env, from_task, to_task, fires_on, state)
SELECT env, from_task, to_task, fires_on, state FROM unnest($1::edge_wire[])
