-- Purpose: what people and keys changed, one row a request. Index: none is read. Locks: the new rows.
-- $1 models.Audit as JSON
INSERT INTO audit (tenant, env, at, actor_kind, actor_id, ip, request_id, action, object, reason, before, after)
SELECT "Tenant", "Env", "At", coalesce("Actor" ->> 'kind', ''), coalesce("Actor" ->> 'id', ''), coalesce("Actor" ->> 'ip', ''),
    coalesce("Actor" ->> 'request_id', ''), "Action", "Object", "Reason", "Before", "After"
FROM json_to_recordset($1::json) AS r ("Tenant" int, "Env" int, "At" bigint, "Actor" jsonb, "Action" text, "Object" text,
    "Reason" text, "Before" text, "After" text)
