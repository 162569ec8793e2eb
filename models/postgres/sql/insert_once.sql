-- Purpose: calls with an Idempotency-Key, with what they made. Index: none is read. Locks: the new rows.
-- $1 models.Once as JSON
INSERT INTO once (scope, key, request, made, at)
SELECT * FROM json_to_recordset($1::json) AS r ("Scope" text, "Key" text, "Request" uuid, "Made" text, "At" bigint)
