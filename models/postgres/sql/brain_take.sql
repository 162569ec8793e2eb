-- Purpose: raise the epoch if the row still is as seen, and note whose session the new brain is, in one commit.
-- Index: brain_pkey. Locks: the brain row; it waits for the batch of the brain before.
-- $1 epoch as seen, $2 beat as seen (empty: whatever), $3 address (NULL: unchanged), $4 when this session began, µs,
-- $5 the last migration that this program knows: one that knew more is not followed by one that knows less
UPDATE brain SET epoch = epoch + 1, renewed_at = clock_timestamp(), address = coalesce($3, address), backend_pid = pg_backend_pid(), schema = $5,
    backend_start = timestamptz 'epoch' + $4::bigint * interval '1 microsecond'
WHERE cell = 1 AND epoch = $1 AND ($2 = '' OR epoch || '/' || xmin = $2) AND schema <= $5
RETURNING epoch
