-- Purpose: what became of workflows; one that is not there raises. Their gates are shut_workflows' business.
-- Index:   workflows_pkey, by all its columns.
-- Locks:   the changed rows.
-- $1 models.Workflow as JSON, $2 how many
WITH changed AS (
    UPDATE workflows w SET state = r."State", counts = r."Counts", cancelling = r."Cancelling", priority = r."Priority",
        input = coalesce(r."Input", '{}'), finished_at = nullif(r."FinishedAt", 0), updated_at = r."UpdatedAt", over = r."Over",
        budget = r."Budget", depth = r."Depth", grown = r."Grown", ends_at = nullif(r."EndsAt", 0)
    FROM json_to_recordset($1::json) AS r ("Env" int, "ID" uuid, "State" smallint, "Counts" int[], "Cancelling" boolean,
        "Priority" smallint, "Input" text, "FinishedAt" bigint, "UpdatedAt" bigint, "Over" boolean, "Budget" jsonb, "Depth" int,
        "Grown" int, "EndsAt" bigint)
    WHERE w.env = r."Env" AND w.id = r."ID"
    RETURNING 1
)
SELECT expect_rows('change_workflows', count(*), $2) FROM changed
