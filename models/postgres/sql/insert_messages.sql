-- Purpose: triggers and items of queues. Index: none is read. Locks: the new rows.
-- $1 rows
INSERT INTO messages (source, env, seq, at, id, matched, size, name, key, data)
SELECT source, env, seq, at, id, matched, size, name, key, data FROM unnest($1::message_wire[])
