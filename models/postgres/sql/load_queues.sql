-- Purpose: what waits in queues: their names one by one, each from the one before, so that it costs by queues and by what
-- waits, not by what was taken. Index: messages_pkey, feed_marks_pkey. Locks: none.
WITH RECURSIVE queues (env, name) AS (
    (SELECT m.env, m.name FROM messages m WHERE m.source = 1 ORDER BY m.source, m.env, m.name LIMIT 1)
    UNION ALL
    SELECT n.env, n.name FROM queues q CROSS JOIN LATERAL (
        SELECT m.env, m.name FROM messages m WHERE m.source = 1 AND (m.source, m.env, m.name) > (1, q.env, q.name)
        ORDER BY m.source, m.env, m.name LIMIT 1) n
)
SELECT q.env, q.name, w.n, w.first_at, w.last_at
FROM queues q
LEFT JOIN feed_marks k ON k.env = q.env AND k.source = 1 AND k.name = q.name AND k.schedule = '00000000-0000-0000-0000-000000000000'
CROSS JOIN LATERAL (
    SELECT count(*) AS n, min(o.at) AS first_at, max(o.at) AS last_at FROM messages o
    WHERE o.source = 1 AND o.env = q.env AND o.name = q.name AND o.seq > coalesce(k.after, 0)
) w
WHERE w.n > 0
ORDER BY q.env, q.name COLLATE "C"
