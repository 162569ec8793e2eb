-- Purpose: cursors that are not finished. Index: cursors_open. Locks: none.
SELECT id, env, kind, target, after, until, matched, done, failed, finished, reason, actor::text, at, action, priority, lane, patch,
    rate, next_at, paused, dropped, wide
FROM cursors WHERE NOT finished ORDER BY id
