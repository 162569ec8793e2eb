-- Purpose: which workflows are shut, and why; one that is not there raises. Index: workflows_pkey. Locks: the changed rows.
-- $1 models.FlowShut as JSON, $2 how many
WITH changed AS (
    UPDATE workflows w SET gate = r."Gate"
    FROM json_to_recordset($1::json) AS r ("Env" int, "Workflow" uuid, "Gate" smallint)
    WHERE w.env = r."Env" AND w.id = r."Workflow"
    RETURNING 1
)
SELECT expect_rows('shut_workflows', count(*), $2) FROM changed
