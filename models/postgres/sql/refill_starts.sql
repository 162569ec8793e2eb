-- Purpose: the next rows of many lines that have a deadline, each above its mark, in order of when they must start.
--          Index: tasks_line_start, by three columns and from the mark on. Locks: none.
-- $1 asks
SELECT a.ask, :task(t) FROM unnest($1::line_wire[]) WITH ORDINALITY a (lane, env, class, gate, age_key, id, most, ask)
CROSS JOIN LATERAL (
    SELECT * FROM tasks t
    WHERE t.lane = a.lane AND t.env = a.env AND t.class = a.class AND t.state = 3 AND t.gate IS NULL
      AND t.latest_start IS NOT NULL AND (t.latest_start, t.id) > (a.age_key, a.id)
    ORDER BY t.lane, t.env, t.class, t.latest_start, t.id LIMIT a.most
) t
