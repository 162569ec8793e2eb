-- Purpose: the open edges of tasks that ended or died fire or are killed, each at most once in its life; counters of the
--          tasks they lead to change relatively; those that wait no longer come back whole. O(edges moved).
-- Index:   edges_from, by two columns; tasks_pkey, by all its columns.
-- Locks:   the edges moved and the tasks they lead to.
-- $1 ends: what becomes of an edge (0: nothing) by what it fires on
WITH moved AS (
    UPDATE edges e SET state = CASE e.fires_on WHEN 0 THEN s.succeeded WHEN 1 THEN s.failed ELSE s.finished END
    FROM unnest($1::end_wire[]) s
    WHERE e.env = s.env AND e.from_task = s.task AND e.state = 0
      AND CASE e.fires_on WHEN 0 THEN s.succeeded WHEN 1 THEN s.failed ELSE s.finished END <> 0
    RETURNING e.env, e.to_task, e.state
), counted AS (
    SELECT env, to_task, count(*)::int AS moved, (count(*) FILTER (WHERE state = 2))::int AS killed
    FROM moved GROUP BY env, to_task
), touched AS (
    UPDATE tasks t SET remaining = t.remaining - c.moved, killed = t.killed + c.killed
    FROM counted c
    WHERE t.env = c.env AND t.id = c.to_task
    RETURNING t.*
)
SELECT :task(t) FROM touched t WHERE t.state = 2 AND (t.remaining = 0 OR t.killed > 0) ORDER BY t.env, t.id
