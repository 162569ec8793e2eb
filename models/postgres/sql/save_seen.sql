-- Purpose: workers' last signs of life, saved every ten seconds.
-- Index:   workers_pkey.
-- Locks:   the saved rows; HOT, as no index knows the column.
-- $1 workers, $2 moments
UPDATE workers w SET last_seen = s.at FROM unnest($1::uuid[], $2::bigint[]) s (id, at) WHERE w.id = s.id
