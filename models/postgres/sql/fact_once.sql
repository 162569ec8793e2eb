-- Purpose: earlier calls with an Idempotency-Key. Index: once_pkey. Locks: none.
-- $1 scopes, $2 keys
SELECT o.scope, o.key, o.request, o.made, o.at FROM unnest($1::text[], $2::text[]) r (scope, key)
JOIN once o ON o.scope = r.scope AND o.key = r.key
