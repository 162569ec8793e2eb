-- Purpose: what running attempts said last; a part that was not said stays.
-- Index:   progress_pkey.
-- Locks:   the saved rows.
-- $1 environments, $2 tasks, $3 progress, $4 checkpoints, $5 at
INSERT INTO progress (env, task, at, progress, checkpoint)
SELECT env, task, $5::bigint, progress, checkpoint FROM unnest($1::int[], $2::uuid[], $3::text[], $4::text[]) p (env, task, progress, checkpoint)
ON CONFLICT (env, task) DO UPDATE SET at = EXCLUDED.at, progress = coalesce(EXCLUDED.progress, progress.progress),
    checkpoint = coalesce(EXCLUDED.checkpoint, progress.checkpoint)
