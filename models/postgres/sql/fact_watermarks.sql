-- Purpose: watermarks by name. Index: watermarks_pkey. Locks: none.
-- $1 environments, $2 names
SELECT w.env, w.name, w.value, w.version, w.at FROM unnest($1::int[], $2::text[]) r (env, name) JOIN watermarks w ON w.env = r.env AND w.name = r.name
