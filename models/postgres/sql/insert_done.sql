-- Purpose: commands that made no row of their own id, to recognise a resend.
-- Index:   none is read.
-- Locks:   the new rows.
-- $1 commands, $2 batch, $3 at
INSERT INTO done (command, batch, at) SELECT command, $2::bigint, $3::bigint FROM unnest($1::uuid[]) command
