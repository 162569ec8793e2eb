-- Purpose: what happened, one packed row an environment.
-- Index:   none is read.
-- Locks:   the new rows.
-- $1 rows, $2 batch, $3 at
INSERT INTO events (batch, env, at, items) SELECT $2::bigint, env, $3::bigint, items FROM unnest($1::event_wire[])
