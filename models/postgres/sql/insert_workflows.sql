-- Purpose: new workflows. Index: none is read. Locks: the new rows.
-- $1 models.Workflow as JSON
INSERT INTO workflows (env, id, name, state, counts, cancelling, priority, input, created_at, finished_at, updated_at,
    stops, over, gate, budget, depth, grown, ends_at, rerun_of, items)
SELECT "Env", "ID", "Name", "State", "Counts", "Cancelling", "Priority", coalesce("Input", '{}'), "CreatedAt",
    nullif("FinishedAt", 0), "UpdatedAt", "Stops", "Over", 0, "Budget", "Depth", "Grown", nullif("EndsAt", 0),
    nullif("RerunOf", '00000000-0000-0000-0000-000000000000'), nullif("Items", 0)
FROM json_to_recordset($1::json) AS r ("Env" int, "ID" uuid, "Name" text, "State" smallint, "Counts" int[],
    "Cancelling" boolean, "Priority" smallint, "Input" text, "CreatedAt" bigint, "FinishedAt" bigint, "UpdatedAt" bigint,
    "Stops" boolean, "Over" boolean, "Budget" jsonb, "Depth" int, "Grown" int, "EndsAt" bigint, "RerunOf" uuid, "Items" int)
