-- What models there are, what was chosen for tasks and why, and what was seen of models: how good their results were, what runs
-- used, which breakers are open, what is left of their tokens a minute.

-- +goose Up

CREATE TABLE models (
    tenant            int     NOT NULL, -- 0: the platform's, which every tenant sees
    name              text    NOT NULL,
    provider          text    NOT NULL, -- 'worker': loaded on workers
    task_types        text[]  NOT NULL,
    input_micro       bigint  NOT NULL CHECK (input_micro >= 0), -- for a million tokens
    output_micro      bigint  NOT NULL CHECK (output_micro >= 0),
    cached_micro      bigint  CHECK (cached_micro >= 0),
    context_tokens    bigint,
    quality           jsonb   NOT NULL,
    latency_ms        bigint,
    vram_mb           bigint,
    batch_discount    float8  NOT NULL CHECK (batch_discount BETWEEN 0 AND 1),
    off_peak          jsonb   NOT NULL,
    fallbacks         text[]  NOT NULL,
    max_concurrent    bigint,
    tokens_per_minute bigint  CHECK (tokens_per_minute > 0),
    enabled           boolean NOT NULL,
    created_at        bigint  NOT NULL,
    updated_at        bigint  NOT NULL,
    version           bigint  NOT NULL,
    PRIMARY KEY (tenant, name)
);

-- One row each time that a model was chosen for a task; the last one stands.
CREATE TABLE model_choices (
    env     int    NOT NULL,
    task    uuid   NOT NULL,
    n       int    NOT NULL,
    at      bigint NOT NULL,
    asked   text,            -- JSON; NULL: a model was asked for by name
    named   text,            -- that one
    chosen  text,            -- NULL: none fits
    reason  text   NOT NULL,
    failed  text[] NOT NULL, -- models whose results were not good enough
    ranking text   NOT NULL, -- JSON
    PRIMARY KEY (env, task, n)
);

-- Sums that fade, saved every ten seconds.
CREATE TABLE model_seen (
    tenant        int    NOT NULL,
    type          text   NOT NULL,
    model         text   NOT NULL,
    judged        float8 NOT NULL,
    good          float8 NOT NULL,
    runs          float8 NOT NULL,
    tokens_in     float8 NOT NULL,
    tokens_out    float8 NOT NULL,
    tokens_cached float8 NOT NULL,
    seconds       float8 NOT NULL,
    PRIMARY KEY (tenant, type, model)
) WITH (fillfactor = 50);

-- Breakers that are not shut.
CREATE TABLE model_breakers (
    tenant int    NOT NULL,
    model  text   NOT NULL,
    opened int    NOT NULL,
    until  bigint NOT NULL,
    class  text   NOT NULL,
    PRIMARY KEY (tenant, model)
);

-- What is left of models' tokens a minute, as scheduler/rate counts it; saved at most once a second.
CREATE TABLE model_levels (
    tenant int    NOT NULL,
    model  text   NOT NULL,
    credit bigint NOT NULL,
    at     bigint NOT NULL,
    PRIMARY KEY (tenant, model)
) WITH (fillfactor = 50);

-- +goose StatementBegin
DO $$
DECLARE
    app       text := quote_ident(current_database() || '_app');
    engine    text := quote_ident(current_database() || '_engine');
    by_env    text := 'env = ANY ((SELECT nullif(current_setting(''nightshift.envs'', true), '''')::int[])::int[])';
    by_tenant text := 'tenant = (SELECT nullif(current_setting(''nightshift.tenant'', true), '''')::int)';
    t         text;
BEGIN
    FOREACH t IN ARRAY ARRAY['models', 'model_choices', 'model_seen', 'model_breakers', 'model_levels'] LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', t);
        EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', t);
        EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON %I TO %s', t, engine);
        EXECUTE format('CREATE POLICY engine ON %I TO %s USING (true) WITH CHECK (true)', t, engine);
        EXECUTE format('GRANT SELECT ON %I TO %s', t, app);
        EXECUTE format('CREATE POLICY app ON %I FOR SELECT TO %s USING (%s)', t, app, CASE t
            WHEN 'models' THEN 'tenant = 0 OR ' || by_tenant
            WHEN 'model_choices' THEN by_env
            ELSE by_tenant END);
    END LOOP;
END $$;
-- +goose StatementEnd

-- +goose Down
-- Tasks that wait for a model go on without one: nothing stays parked behind a gate that nobody knows.
-- +goose StatementBegin
DO $$
BEGIN
    EXECUTE format('SET LOCAL ROLE %I', current_database() || '_engine');
    UPDATE tasks SET gate = NULL WHERE state = 3 AND gate = 'model';
    RESET ROLE;
END $$;
-- +goose StatementEnd
DROP TABLE models, model_choices, model_seen, model_breakers, model_levels;
