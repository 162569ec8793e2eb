-- Purpose: the brain lives. Index: brain_pkey. Locks: the brain row; HOT.
-- $1 epoch
UPDATE brain SET renewed_at = clock_timestamp() WHERE cell = 1 AND epoch = $1 RETURNING epoch
