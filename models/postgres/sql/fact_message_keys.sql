-- Purpose: the last message with a dedupe key. Index: messages_key. Locks: none.
-- $1 environments, $2 sources, $3 names, $4 keys
SELECT m.source, m.env, m.seq, m.at, m.id, m.matched, m.size, m.name, m.key
FROM unnest($1::int[], $2::smallint[], $3::text[], $4::text[]) r (env, source, name, key)
CROSS JOIN LATERAL (
    SELECT o.* FROM messages o WHERE o.env = r.env AND o.source = r.source AND o.name = r.name AND o.key = r.key AND o.key IS NOT NULL
    ORDER BY o.seq DESC LIMIT 1
) m
