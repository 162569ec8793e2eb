-- Purpose: how far the items of tasks are. Index: task_items_pkey. Locks: the saved rows.
-- $1 models.Items as JSON
INSERT INTO task_items (env, task, workflow, first, total, done, used, remain)
SELECT "Env", "Task", "Workflow", "First", "Total", "Done", "Used", nullif("Left"::text, 'null')
FROM json_to_recordset($1::json) AS r ("Env" int, "Task" uuid, "Workflow" uuid, "First" int, "Total" int, "Done" int, "Used" int, "Left" json)
ON CONFLICT (env, task) DO UPDATE SET done = EXCLUDED.done, used = EXCLUDED.used, remain = EXCLUDED.remain
