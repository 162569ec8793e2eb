-- Purpose: like fire_edges, for at most so many edges, in the order of the ends and of the tasks their edges lead to.
-- Index:   edges_from, from where an end is to go on, then by all its columns; tasks_pkey, by all its columns.
-- Locks:   the edges moved and the tasks they lead to.
-- $1 ends: what becomes of an edge (0: nothing) by what it fires on; $2 most
WITH picked AS MATERIALIZED (
    SELECT e.* FROM unnest($1::end_wire[]) s
    CROSS JOIN LATERAL (
        SELECT e.env, e.from_task, e.to_task, e.fires_on,
            CASE e.fires_on WHEN 0 THEN s.succeeded WHEN 1 THEN s.failed ELSE s.finished END AS becomes FROM edges e
        WHERE e.env = s.env AND e.from_task = s.task AND e.to_task >= s.after AND e.state = 0
          AND CASE e.fires_on WHEN 0 THEN s.succeeded WHEN 1 THEN s.failed ELSE s.finished END <> 0
        ORDER BY e.env, e.from_task, e.to_task, e.fires_on LIMIT $2
    ) e LIMIT $2
), moved AS (
    UPDATE edges e SET state = p.becomes FROM picked p
    WHERE e.env = p.env AND e.to_task = p.to_task AND e.from_task = p.from_task AND e.fires_on = p.fires_on
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
