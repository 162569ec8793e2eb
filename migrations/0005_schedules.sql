-- Runs that make workflows, when they must have ended, freezes of environments, variables, and which tasks a schedule made.

-- +goose Up
ALTER TABLE environments ADD COLUMN freeze_windows jsonb NOT NULL DEFAULT '[]'; -- models.Freeze
ALTER TABLE schedule_states ADD COLUMN forced boolean NOT NULL DEFAULT false; -- an operator lets it go on that is not enabled
ALTER TABLE schedule_runs
    ADD COLUMN workflow uuid,
    ADD COLUMN due_at bigint,  -- it must have ended by then
    ADD COLUMN late_at bigint; -- when it was told that it had not
CREATE INDEX schedule_runs_flows ON schedule_runs (env, id) WHERE finished_at IS NULL AND workflow IS NOT NULL;

-- The tasks that the runs of a schedule made.
CREATE TABLE schedule_tasks (
    env      int  NOT NULL,
    schedule uuid NOT NULL,
    task     uuid NOT NULL,
    PRIMARY KEY (env, schedule, task)
);
CREATE INDEX schedule_tasks_task ON schedule_tasks (env, task); -- they go with their task

-- What payloads of schedules name: all of an environment in one row, because they are set together.
CREATE TABLE variables (
    env     int PRIMARY KEY,
    vars    json   NOT NULL,
    version bigint NOT NULL,
    at      bigint NOT NULL
);

-- +goose StatementBegin
DO $$
DECLARE
    app    text := quote_ident(current_database() || '_app');
    engine text := quote_ident(current_database() || '_engine');
    by_env text := 'env = ANY ((SELECT nullif(current_setting(''nightshift.envs'', true), '''')::int[])::int[])';
    t      text;
BEGIN
    FOREACH t IN ARRAY ARRAY['schedule_tasks', 'variables'] LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', t);
        EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', t);
        EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON %I TO %s', t, engine);
        EXECUTE format('CREATE POLICY engine ON %I TO %s USING (true) WITH CHECK (true)', t, engine);
        EXECUTE format('GRANT SELECT ON %I TO %s', t, app);
        EXECUTE format('CREATE POLICY app ON %I FOR SELECT TO %s USING (%s)', t, app, by_env);
    END LOOP;
END $$;
-- +goose StatementEnd

-- +goose Down
DROP TABLE variables, schedule_tasks;
DROP INDEX schedule_runs_flows;
ALTER TABLE schedule_runs DROP COLUMN late_at, DROP COLUMN due_at, DROP COLUMN workflow;
ALTER TABLE schedule_states DROP COLUMN forced;
ALTER TABLE environments DROP COLUMN freeze_windows;
