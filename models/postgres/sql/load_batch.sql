-- Purpose: the last commit of any brain. Index: batches_pkey, backwards. Locks: none.
SELECT batch, at FROM batches WHERE cell = 1 ORDER BY batch DESC LIMIT 1
