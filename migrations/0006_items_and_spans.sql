-- Batches of items, and what attempts say of their time.

-- +goose Up

-- How many items a batch has; NULL: the workflow is none.
ALTER TABLE workflows ADD COLUMN items int;
CREATE INDEX workflows_items ON workflows (env, id) WHERE items IS NOT NULL;

-- How far the items of a task are.
CREATE TABLE task_items (
    env      int  NOT NULL,
    task     uuid NOT NULL,
    workflow uuid NOT NULL,
    first    int  NOT NULL, -- the place of its first item in the batch
    total    int  NOT NULL CHECK (total > 0),
    done     int  NOT NULL CHECK (done BETWEEN 0 AND total),
    used     int  NOT NULL, -- the task's attempts_used when this was written
    remain   text,          -- models.Item as JSON: those that failed when last tried; NULL with none done: not tried yet
    PRIMARY KEY (env, task)
) WITH (fillfactor = 80);
CREATE INDEX task_items_batch ON task_items (env, workflow, first);

-- Spans that attempts reported, kept as long as logs. The replica that received them writes them.
CREATE TABLE spans (
    id         bigint GENERATED ALWAYS AS IDENTITY,
    env        int    NOT NULL,
    task       uuid   NOT NULL,
    attempt    int    NOT NULL,
    at         bigint NOT NULL, -- when they came
    span       text   NOT NULL,
    parent     text,
    name       text   NOT NULL,
    began      bigint NOT NULL,
    ended      bigint NOT NULL,
    attributes text   NOT NULL,
    PRIMARY KEY (env, task, id)
);
CREATE UNIQUE INDEX spans_once ON spans (env, task, span);
CREATE INDEX spans_id ON spans (id);

-- +goose StatementBegin
DO $$
DECLARE
    app    text := quote_ident(current_database() || '_app');
    engine text := quote_ident(current_database() || '_engine');
    t      text;
BEGIN
    FOREACH t IN ARRAY ARRAY['task_items', 'spans'] LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', t);
        EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', t);
        EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON %I TO %s', t, engine);
        EXECUTE format('CREATE POLICY engine ON %I TO %s USING (true) WITH CHECK (true)', t, engine);
        EXECUTE format('GRANT SELECT ON %I TO %s', t, app);
        EXECUTE format('CREATE POLICY app ON %I FOR SELECT TO %s USING (env = ANY ((SELECT nullif(current_setting(''nightshift.envs'', true), '''')::int[])::int[]))', t, app);
    END LOOP;
    EXECUTE format('GRANT USAGE ON ALL SEQUENCES IN SCHEMA public TO %s', engine);
END $$;
-- +goose StatementEnd

-- +goose Down
DROP TABLE spans, task_items;
ALTER TABLE workflows DROP COLUMN items;
