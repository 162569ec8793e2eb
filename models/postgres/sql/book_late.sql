-- Purpose: usage of attempts whose lease was lost, reported afterwards; booked once, so a second time raises.
-- Index:   attempts_pkey, by environment and task.
-- Locks:   the booked rows.
-- $1 environments, $2 tasks, $3 tokens, $4 usages, $5 how many
WITH booked AS (
    UPDATE attempts a SET usage = l.usage
    FROM unnest($1::int[], $2::uuid[], $3::uuid[], $4::text[]) l (env, task, token, usage)
    WHERE a.env = l.env AND a.task = l.task AND a.token = l.token AND a.usage IS NULL
    RETURNING 1
)
SELECT expect_rows('book_late', count(*), $5) FROM booked
