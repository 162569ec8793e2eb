-- Purpose: tasks wait for more others than before: children they spawned, or tasks outside the body they enter with. Some
--          of those may be of no hope any more.
-- Index:   tasks_pkey, by all its columns.
-- Locks:   the tasks.
-- $1 models.Wait as JSON
UPDATE tasks t SET remaining = t.remaining + w."More", killed = t.killed + w."Killed"
FROM json_to_recordset($1::json) AS w ("Env" int, "Task" uuid, "More" int, "Killed" int)
WHERE t.env = w."Env" AND t.id = w."Task"
