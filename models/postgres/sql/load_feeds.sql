-- Purpose: what waits beyond the marks of event schedules. Index: feed_marks_pkey, messages_pkey. Locks: none.
SELECT k.env, k.source, k.name, k.schedule, m.n, m.first_at, m.last_at
FROM feed_marks k
CROSS JOIN LATERAL (
    SELECT count(*) AS n, min(o.at) AS first_at, max(o.at) AS last_at FROM messages o
    WHERE o.source = 0 AND o.env = k.env AND o.name = k.name AND o.seq > k.after
) m
WHERE k.source + 0 = 0
ORDER BY k.env, k.source, k.name COLLATE "C", k.schedule
