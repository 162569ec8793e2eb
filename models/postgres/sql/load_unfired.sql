-- Purpose: ends of which edges have not moved yet. Index: unfired_pkey. Locks: none.
SELECT env, task, state, after FROM unfired ORDER BY env, task
