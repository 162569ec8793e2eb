-- Purpose: schedules that were deleted; their runs stay until they are old. Index: schedules_pkey, schedule_states_pkey,
-- schedule_versions_pkey. Locks: the deleted rows.
-- $1 environments, $2 ids
WITH gone AS (SELECT * FROM unnest($1::int[], $2::uuid[]) t (env, id)),
versions AS (DELETE FROM schedule_versions v USING gone g WHERE v.env = g.env AND v.schedule = g.id),
states AS (DELETE FROM schedule_states s USING gone g WHERE s.env = g.env AND s.id = g.id)
DELETE FROM schedules s USING gone g WHERE s.env = g.env AND s.id = g.id
