-- Purpose: messages of commands that were sent again. Index: messages_id. Locks: none.
-- $1 ids
SELECT m.source, m.env, m.seq, m.at, m.id, m.matched, m.size, m.name, m.key FROM unnest($1::uuid[]) r (id) JOIN messages m ON m.id = r.id
