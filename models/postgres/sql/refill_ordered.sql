-- Purpose: the next rows parked behind many gates, each above its mark, in the order in which they became ready.
--          Index: tasks_parked_order. Locks: none.
-- $1 asks; age_key is a place in the order
SELECT a.ask, :task(t) FROM unnest($1::line_wire[]) WITH ORDINALITY a (lane, env, class, gate, age_key, id, most, ask)
CROSS JOIN LATERAL (
    SELECT * FROM tasks t
    WHERE t.env = a.env AND t.gate = a.gate AND t.state = 3 AND t.gate IS NOT NULL AND t.order_key IS NOT NULL
      AND (t.order_key, t.id) > (a.age_key, a.id)
    ORDER BY t.env, t.gate, t.order_key, t.id LIMIT a.most
) t
