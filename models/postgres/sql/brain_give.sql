-- Purpose: the brain gives up, so that nobody need wait. Index: brain_pkey. Locks: the brain row; HOT.
-- $1 epoch
UPDATE brain SET renewed_at = '-infinity' WHERE cell = 1 AND epoch = $1 RETURNING epoch
