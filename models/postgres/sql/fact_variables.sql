-- Purpose: the variables of environments. Index: variables_pkey. Locks: none.
-- $1 environments
SELECT v.env, v.vars, v.version, v.at FROM unnest($1::int[]) r (env) JOIN variables v ON v.env = r.env
