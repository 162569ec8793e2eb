-- Purpose: new classes. Index: none is read. Locks: the new rows.
-- $1 number, digest (hex), type and spec as JSON
INSERT INTO classes (number, digest, type, spec)
SELECT "Number", decode("Digest", 'hex'), "Type", "Spec"
FROM json_to_recordset($1::json) AS r ("Number" int, "Digest" text, "Type" text, "Spec" jsonb)
