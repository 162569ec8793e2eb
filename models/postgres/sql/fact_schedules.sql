-- Purpose: what schedules do. Index: schedules_pkey. Locks: none.
-- $1 environments, $2 ids
SELECT s.env, s.id, s.task, s.given FROM unnest($1::int[], $2::uuid[]) r (env, id)
JOIN schedules s ON s.env = r.env AND s.id = r.id
