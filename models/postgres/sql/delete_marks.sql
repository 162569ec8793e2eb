-- Purpose: feeds that nobody reads any more. Index: feed_marks_pkey. Locks: the deleted rows.
-- $1 environments, $2 sources, $3 names, $4 schedules
DELETE FROM feed_marks m USING unnest($1::int[], $2::smallint[], $3::text[], $4::uuid[]) r (env, source, name, schedule)
WHERE m.env = r.env AND m.source = r.source AND m.name = r.name AND m.schedule = r.schedule
