-- Purpose: the payloads of those tasks. Index: bulk_items_pkey, specs_pkey, overrides_pkey. Locks: none.
-- $1 environment, $2 list, $3 after, $4 until, $5 most
SELECT s.env, s.id, coalesce(o.payload, s.payload) FROM (
    SELECT b.env, b.task FROM bulk_items b WHERE b.cursor = $2 AND b.task > $3 AND b.task <= $4 AND b.env + 0 = $1
    ORDER BY b.cursor, b.task LIMIT $5
) b JOIN specs s ON s.env = b.env AND s.id = b.task LEFT JOIN overrides o ON o.env = s.env AND o.task = s.id
