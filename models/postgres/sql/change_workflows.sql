-- Purpose: what became of workflows; one that is not there raises.
-- Index:   workflows_pkey, by all its columns.
-- Locks:   the changed rows.
-- $1 models.Workflow as JSON, $2 how many
WITH changed AS (
    UPDATE workflows w SET state = r."State", counts = r."Counts", cancelling = r."Cancelling",
        finished_at = nullif(r."FinishedAt", 0), updated_at = r."UpdatedAt"
    FROM json_to_recordset($1::json) AS r ("Env" int, "ID" uuid, "State" smallint, "Counts" int[], "Cancelling" boolean,
        "FinishedAt" bigint, "UpdatedAt" bigint)
    WHERE w.env = r."Env" AND w.id = r."ID"
    RETURNING 1
)
SELECT expect_rows('change_workflows', count(*), $2) FROM changed
