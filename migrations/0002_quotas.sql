-- What tenants may hold and do at most, what their tasks may ask for, and what is said of task types; the tokens a task
-- expects to use; and how many tasks wait. Every statement may be run again: the index is built beside what goes on, which
-- no transaction can hold.

-- +goose NO TRANSACTION
-- +goose Up

CREATE TABLE IF NOT EXISTS quotas (
    tenant               int PRIMARY KEY,
    max_concurrent       bigint, -- NULL: no limit, like all of them
    max_queued           bigint,
    max_gpus             bigint,
    max_vram_mb          bigint,
    tokens_per_minute    bigint CHECK (tokens_per_minute > 0),
    requests_per_minute  bigint CHECK (requests_per_minute > 0),
    max_schedules        bigint,
    min_interval_seconds bigint,
    updated_at           bigint NOT NULL,
    version              bigint NOT NULL
);

-- What is left of tenants' tokens a minute, as scheduler/rate counts it; saved at most once a second.
CREATE TABLE IF NOT EXISTS token_levels (
    tenant int PRIMARY KEY,
    credit bigint NOT NULL,
    at     bigint NOT NULL
) WITH (fillfactor = 50);

CREATE TABLE IF NOT EXISTS permissions (
    env        int PRIMARY KEY,
    granted    text[] NOT NULL,
    updated_at bigint NOT NULL,
    version    bigint NOT NULL
);

CREATE TABLE IF NOT EXISTS task_types (
    env            int     NOT NULL,
    type           text    NOT NULL,
    input_schema   text,
    schema         bigint  NOT NULL, -- names input_schema: the version that brought it; 0: there is none
    max_concurrent bigint,
    paused         boolean NOT NULL,
    reason         text    NOT NULL,
    updated_at     bigint  NOT NULL,
    version        bigint  NOT NULL,
    PRIMARY KEY (env, type)
);

ALTER TABLE tasks ADD COLUMN IF NOT EXISTS tokens bigint;

-- How many tasks of an environment are queued without being ready: a task that starts at once never enters it.
DROP INDEX CONCURRENTLY IF EXISTS tasks_later; -- one that was not finished
CREATE INDEX CONCURRENTLY tasks_later ON tasks (env) WHERE state IN (1, 2, 5);

-- +goose StatementBegin
DO $$
BEGIN
    CREATE TYPE task_wire_2 AS (
        env int, lane int, class int, state smallint, priority smallint, flags smallint,
        attempt int, attempts_used int, max_attempts int, remaining int, killed int, hard_seconds int,
        age_key bigint, created_at bigint, updated_at bigint, id uuid,
        ready_at bigint, wake_at bigint, expires_at bigint, deadline bigint, latest_start bigint, started_at bigint,
        finished_at bigint, lease_until bigint, cards bigint, cancel_at bigint, estimate_ms bigint, leases_lost int, key_limit int, soft_seconds int, delay_seconds int,
        total_seconds int, depth int, total_until bigint, tokens bigint,
        workflow uuid, parent uuid, worker uuid, attempt_id uuid, token uuid, fingerprint uuid,
        gate text, key text, idem_key text, limit_key text, error_class text,
        ref uuid, was smallint
    );
EXCEPTION WHEN duplicate_object THEN
    NULL;
END $$;
-- +goose StatementEnd

-- +goose StatementBegin
DO $$
DECLARE
    app       text := quote_ident(current_database() || '_app');
    engine    text := quote_ident(current_database() || '_engine');
    by_env    text := 'env = ANY ((SELECT nullif(current_setting(''nightshift.envs'', true), '''')::int[])::int[])';
    by_tenant text := 'tenant = (SELECT nullif(current_setting(''nightshift.tenant'', true), '''')::int)';
    t         text;
BEGIN
    FOREACH t IN ARRAY ARRAY['quotas', 'token_levels', 'permissions', 'task_types'] LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', t);
        EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', t);
        EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON %I TO %s', t, engine);
        EXECUTE format('DROP POLICY IF EXISTS engine ON %I', t);
        EXECUTE format('CREATE POLICY engine ON %I TO %s USING (true) WITH CHECK (true)', t, engine);
        EXECUTE format('GRANT SELECT ON %I TO %s', t, app);
        EXECUTE format('DROP POLICY IF EXISTS app ON %I', t);
        EXECUTE format('CREATE POLICY app ON %I FOR SELECT TO %s USING (%s)', t, app,
            CASE WHEN t IN ('quotas', 'token_levels') THEN by_tenant ELSE by_env END);
    END LOOP;
END $$;
-- +goose StatementEnd

-- +goose Down
DROP INDEX CONCURRENTLY IF EXISTS tasks_later;
DROP TABLE IF EXISTS quotas, token_levels, permissions, task_types;
ALTER TABLE tasks DROP COLUMN IF EXISTS tokens;
DROP TYPE IF EXISTS task_wire_2;
