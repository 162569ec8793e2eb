-- Purpose: what was changed of tasks' input; a part that was not changed stays. Index: overrides_pkey. Locks: the saved rows.
-- $1 environments, $2 tasks, $3 inputs, $4 payloads
INSERT INTO overrides (env, task, input, payload)
SELECT * FROM unnest($1::int[], $2::uuid[], $3::text[], $4::text[])
ON CONFLICT (env, task) DO UPDATE SET input = coalesce(EXCLUDED.input, overrides.input), payload = coalesce(EXCLUDED.payload, overrides.payload)
