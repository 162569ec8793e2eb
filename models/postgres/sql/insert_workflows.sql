-- Purpose: new workflows. Index: none is read. Locks: the new rows.
-- $1 models.Workflow as JSON
INSERT INTO workflows (env, id, name, state, counts, cancelling, priority, input, created_at, finished_at, updated_at)
SELECT "Env", "ID", "Name", "State", "Counts", "Cancelling", "Priority", coalesce("Input", '{}'), "CreatedAt",
    nullif("FinishedAt", 0), "UpdatedAt"
FROM json_to_recordset($1::json) AS r ("Env" int, "ID" uuid, "Name" text, "State" smallint, "Counts" int[],
    "Cancelling" boolean, "Priority" smallint, "Input" text, "CreatedAt" bigint, "FinishedAt" bigint, "UpdatedAt" bigint)
