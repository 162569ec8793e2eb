-- Purpose: cursors, whole rows. Index: cursors_pkey. Locks: the saved rows.
-- $1 models.Cursor as JSON
INSERT INTO cursors (id, env, kind, finished, target, after, until, matched, done, failed, at, reason, actor)
SELECT "ID", "Env", "Kind", "Finished", "Target", "After", "Until", "Matched", "Done", "Failed", "At", "Reason", "Actor"
FROM json_to_recordset($1::json) AS r ("ID" uuid, "Env" int, "Kind" smallint, "Finished" boolean, "Target" uuid,
    "After" uuid, "Until" uuid, "Matched" bigint, "Done" bigint, "Failed" bigint, "At" bigint, "Reason" text, "Actor" jsonb)
ON CONFLICT (id) DO UPDATE SET env = EXCLUDED.env, kind = EXCLUDED.kind, finished = EXCLUDED.finished,
    target = EXCLUDED.target, after = EXCLUDED.after, until = EXCLUDED.until, matched = EXCLUDED.matched,
    done = EXCLUDED.done, failed = EXCLUDED.failed, at = EXCLUDED.at, reason = EXCLUDED.reason, actor = EXCLUDED.actor
