-- Purpose: edges of rows that enter, to tasks outside their body, become what those tasks make of them; one that is not
--          there, or was judged before, raises.
-- Index:   edges_from, by all its columns.
-- Locks:   the edges.
-- $1 rows, $2 how many
WITH linked AS (
    UPDATE edges e SET state = l.state FROM unnest($1::edge_wire[]) l
    WHERE e.env = l.env AND e.to_task = l.to_task AND e.from_task = l.from_task AND e.fires_on = l.fires_on AND e.state + 0 = 3
    RETURNING 1
)
SELECT expect_rows('link_edges', count(*), $2) FROM linked
