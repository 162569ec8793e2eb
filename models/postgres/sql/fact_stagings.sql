-- Purpose: what was staged. Index: stagings_pkey. Locks: none.
-- $1 stagings
SELECT s.id, s.env, s.tasks, s.at, s.flipped FROM unnest($1::uuid[]) r (id) JOIN stagings s ON s.id = r.id AND NOT s.dropped
