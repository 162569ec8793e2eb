-- Purpose: the oldest messages of feeds beyond their marks, a bounded number and size each, and one more. Items come without their data,
-- which is not read then. Index: feed_marks_pkey, messages_pkey. Locks: none.
-- $1 environments, $2 sources, $3 names, $4 schedules, $5 most messages, $6 most bytes together, $7 bytes counted beside the data of each
SELECT f.n, m.source, m.env, m.seq, m.at, m.id, m.matched, m.size, m.name, m.key, CASE WHEN f.source = 0 THEN m.data END
FROM unnest($1::int[], $2::smallint[], $3::text[], $4::uuid[], $5::int[], $6::bigint[], $7::int[]) WITH ORDINALITY
    AS f (env, source, name, schedule, most, bytes, beside, n)
LEFT JOIN feed_marks k ON k.env = f.env AND k.source = f.source AND k.name = f.name AND k.schedule = f.schedule
CROSS JOIN LATERAL (
    SELECT o.*, sum(o.size + f.beside) OVER (ORDER BY o.seq) AS total
    FROM (SELECT w.* FROM messages w WHERE w.source = f.source AND w.env = f.env AND w.name = f.name
        AND w.seq > coalesce(k.after, 0) ORDER BY w.source, w.env, w.name, w.seq LIMIT f.most) o
) m
WHERE m.total - m.size - f.beside <= f.bytes
ORDER BY f.n, m.seq
