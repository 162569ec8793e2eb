-- Purpose: the first statement of every batch: only the brain of this epoch goes on, and its batch gets its number.
-- Index:   brain_pkey, batches_pkey.
-- Locks:   the brain row FOR NO KEY UPDATE until the batch ends; it makes no new version of the row.
-- $1 epoch, $2 batch, $3 at
WITH held AS MATERIALIZED (
    SELECT epoch FROM brain WHERE cell = 1 AND epoch = $1 FOR NO KEY UPDATE
), numbered AS (
    INSERT INTO batches (cell, batch, epoch, at) SELECT 1, $2::bigint, epoch, $3::bigint FROM held RETURNING 1
)
SELECT expect_brain($1, count(*)) FROM numbered
