-- Purpose: whose a batch is. Index: batches_pkey. Locks: none.
-- $1 batch
SELECT epoch FROM batches WHERE cell = 1 AND batch = $1
