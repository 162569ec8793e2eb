-- Purpose: what was submitted, beside the new rows.
-- Index:   none is read.
-- Locks:   the new rows.
-- $1 rows
INSERT INTO specs (env, id, redrive_of, input, payload, trace)
SELECT env, id, redrive_of, input, payload, trace FROM unnest($1::spec_wire[])
