-- Purpose: how many tasks of each line are parked behind a gate, with the keys of the first of them: those of a gate are the
--          same. Index: tasks_parked alone, then one row a gate, and of
--          ordered ones the first by tasks_parked_order. Locks: none.
SELECT g.lane, g.env, g.class, g.gate, g.n, f.age_key, f.limit_key, f.key_limit, f.more_keys, f.flags & 4096 > 0, o.order_key
FROM (
    SELECT lane, env, class, gate, count(*) AS n FROM tasks WHERE state = 3 AND gate IS NOT NULL GROUP BY env, gate, lane, class
) g
CROSS JOIN LATERAL (
    SELECT * FROM tasks t WHERE t.env = g.env AND t.gate = g.gate AND t.lane = g.lane AND t.class = g.class AND t.state = 3 AND t.gate IS NOT NULL
    ORDER BY t.env, t.gate, t.lane, t.class, t.age_key, t.id LIMIT 1
) f
LEFT JOIN LATERAL (
    SELECT t.order_key FROM tasks t WHERE t.env = g.env AND t.gate = g.gate AND t.state = 3 AND t.gate IS NOT NULL AND t.order_key IS NOT NULL
    ORDER BY t.env, t.gate, t.order_key, t.id LIMIT 1
) o ON true
ORDER BY g.lane, g.env, g.class, g.gate
