-- Purpose: lanes that are held back no longer. Index: holds_pkey. Locks: the deleted rows.
-- $1 lanes, $2 pools
DELETE FROM holds h USING unnest($1::int[], $2::text[]) g (lane, pool) WHERE h.lane = g.lane AND h.pool = g.pool
