-- Purpose: cursors, whole rows. Index: cursors_pkey. Locks: the saved rows.
-- $1 models.Cursor as JSON
INSERT INTO cursors (id, env, kind, finished, target, after, until, matched, done, failed, at, reason, actor, action, priority, lane,
    patch, rate, next_at, paused, dropped, wide)
SELECT "ID", "Env", "Kind", "Finished", "Target", "After", "Until", "Matched", "Done", "Failed", "At", "Reason", "Actor", "Action",
    "Priority", "Lane", nullif("Patch"::text, 'null'), "Rate", "NextAt", "Paused", "Dropped", "Wide"
FROM json_to_recordset($1::json) AS r ("ID" uuid, "Env" int, "Kind" smallint, "Finished" boolean, "Target" uuid,
    "After" uuid, "Until" uuid, "Matched" bigint, "Done" bigint, "Failed" bigint, "At" bigint, "Reason" text, "Actor" jsonb,
    "Action" smallint, "Priority" smallint, "Lane" text, "Patch" json, "Rate" float8, "NextAt" bigint, "Paused" boolean, "Dropped" boolean, "Wide" int)
ON CONFLICT (id) DO UPDATE SET env = EXCLUDED.env, kind = EXCLUDED.kind, finished = EXCLUDED.finished,
    target = EXCLUDED.target, after = EXCLUDED.after, until = EXCLUDED.until, matched = EXCLUDED.matched,
    done = EXCLUDED.done, failed = EXCLUDED.failed, at = EXCLUDED.at, reason = EXCLUDED.reason, actor = EXCLUDED.actor,
    action = EXCLUDED.action, priority = EXCLUDED.priority, lane = EXCLUDED.lane, patch = EXCLUDED.patch, rate = EXCLUDED.rate,
    next_at = EXCLUDED.next_at, paused = EXCLUDED.paused, dropped = EXCLUDED.dropped
