-- Purpose: which schedule made a task or a workflow. Index: schedule_tasks_pkey. Locks: none.
-- $1 environments, $2 schedules, $3 tasks
INSERT INTO schedule_tasks (env, schedule, task) SELECT * FROM unnest($1::int[], $2::uuid[], $3::uuid[])
