-- Purpose: after fire_some: which ends have edges left, and from where; they are kept until none has.
-- Index:   edges_from, the first row from where an end went on; unfired_pkey, by all its columns.
-- Locks:   the rows kept or done with.
-- $1 ends: as for fire_some
WITH ends AS MATERIALIZED (
    SELECT * FROM unnest($1::end_wire[]) s
), looked AS MATERIALIZED (
    SELECT s.env, s.task, s.state, e.to_task FROM ends s
    LEFT JOIN LATERAL (
        SELECT e.to_task FROM edges e
        WHERE e.env = s.env AND e.from_task = s.task AND e.to_task >= s.after AND e.state = 0
          AND CASE e.fires_on WHEN 0 THEN s.succeeded WHEN 1 THEN s.failed ELSE s.finished END <> 0
        ORDER BY e.env, e.from_task, e.to_task LIMIT 1
    ) e ON true
), kept AS (
    INSERT INTO unfired (env, task, state, after) SELECT env, task, state, to_task FROM looked WHERE to_task IS NOT NULL
    ON CONFLICT (env, task) DO UPDATE SET state = EXCLUDED.state, after = EXCLUDED.after
), finished AS (
    DELETE FROM unfired u USING looked s WHERE s.to_task IS NULL AND u.env = s.env AND u.task = s.task
)
SELECT env, task, state, to_task FROM looked WHERE to_task IS NOT NULL ORDER BY env, task
