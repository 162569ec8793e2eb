-- Purpose: staged bodies become part of the world; one that is not there, or already is, raises.
-- Index:   stagings_pkey.
-- Locks:   the flipped rows.
-- $1 stagings, $2 how many
WITH flipped AS (
    UPDATE stagings SET flipped = true WHERE id = ANY ($1::uuid[]) AND NOT flipped AND NOT dropped RETURNING 1
)
SELECT expect_rows('flip_stagings', count(*), $2) FROM flipped
