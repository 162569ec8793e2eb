-- What tenants may spend, what they have spent, and what a task is expected to cost.

-- +goose Up
ALTER TABLE tasks ADD COLUMN cost_micro bigint; -- that a run is expected to cost, in millionths of a dollar; -1: nothing

CREATE TYPE task_wire_4 AS (
    env int, lane int, class int, state smallint, priority smallint, flags smallint,
    attempt int, attempts_used int, max_attempts int, remaining int, killed int, hard_seconds int,
    age_key bigint, created_at bigint, updated_at bigint, id uuid,
    ready_at bigint, wake_at bigint, expires_at bigint, deadline bigint, latest_start bigint, started_at bigint,
    finished_at bigint, lease_until bigint, cards bigint, cancel_at bigint, estimate_ms bigint, leases_lost int, key_limit int, soft_seconds int, delay_seconds int,
    total_seconds int, depth int, total_until bigint, tokens bigint, cost_micro bigint,
    workflow uuid, parent uuid, worker uuid, attempt_id uuid, token uuid, fingerprint uuid,
    gate text, key text, idem_key text, limit_key text, error_class text, order_key bigint, more_keys text,
    ref uuid, was smallint -- a change: the token and state it was decided on; a staged row: its staging
);

CREATE TABLE budgets (
    id           uuid     PRIMARY KEY,
    tenant       int      NOT NULL,
    scope        smallint NOT NULL CHECK (scope BETWEEN 0 AND 3), -- tenant, environment, type, model
    env          int      NOT NULL,                               -- of scope environment, else 0
    name         text     NOT NULL,                               -- of scope type and model, else empty
    period       smallint NOT NULL CHECK (period BETWEEN 0 AND 2), -- day, month, total
    timezone     text     NOT NULL,
    limit_micro  bigint   CHECK (limit_micro >= 0),               -- NULL: no limit, like the next
    limit_tokens bigint   CHECK (limit_tokens >= 0),
    on_exhausted smallint NOT NULL CHECK (on_exhausted BETWEEN 0 AND 2), -- hold, reject, downgrade
    alert_at     float8[] NOT NULL,
    alerted_for  bigint   NOT NULL, -- the period of the last alert, by its beginning
    alerted      float8   NOT NULL, -- its largest threshold that was told
    created_at   bigint   NOT NULL,
    updated_at   bigint   NOT NULL,
    version      bigint   NOT NULL,
    UNIQUE (tenant, scope, env, name, period)
);

-- What a batch adds to what was spent of a budget in a period: rows that add up, so that none is written again and again.
CREATE TABLE budget_spends (
    budget     uuid   NOT NULL,
    since      bigint NOT NULL, -- when the period begins
    batch      bigint NOT NULL,
    tenant     int    NOT NULL,
    cost_micro bigint NOT NULL,
    tokens     bigint NOT NULL,
    PRIMARY KEY (budget, since, batch)
);

-- What attempts that were lost are taken to have spent, until they report it.
CREATE TABLE presumed_spends (
    env        int    NOT NULL,
    task       uuid   NOT NULL,
    token      uuid   NOT NULL,
    of_account uuid   NOT NULL, -- a budget, or a workflow
    since      bigint NOT NULL, -- when the period of the budget begins
    cost_micro bigint NOT NULL,
    tokens     bigint NOT NULL,
    PRIMARY KEY (env, task, token, of_account)
);

-- +goose StatementBegin
DO $$
DECLARE
    app       text := quote_ident(current_database() || '_app');
    engine    text := quote_ident(current_database() || '_engine');
    by_env    text := 'env = ANY ((SELECT nullif(current_setting(''nightshift.envs'', true), '''')::int[])::int[])';
    by_tenant text := 'tenant = (SELECT nullif(current_setting(''nightshift.tenant'', true), '''')::int)';
    t         text;
BEGIN
    FOREACH t IN ARRAY ARRAY['budgets', 'budget_spends', 'presumed_spends'] LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', t);
        EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', t);
        EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON %I TO %s', t, engine);
        EXECUTE format('CREATE POLICY engine ON %I TO %s USING (true) WITH CHECK (true)', t, engine);
        EXECUTE format('GRANT SELECT ON %I TO %s', t, app);
        EXECUTE format('CREATE POLICY app ON %I FOR SELECT TO %s USING (%s)', t, app,
            CASE t WHEN 'presumed_spends' THEN by_env ELSE by_tenant END);
    END LOOP;
END $$;
-- +goose StatementEnd

-- +goose Down
-- What waits for money goes on, and nothing stays parked behind a gate that nobody knows.
-- +goose StatementBegin
DO $$
BEGIN
    EXECUTE format('SET LOCAL ROLE %I', current_database() || '_engine');
    UPDATE tasks SET gate = NULL WHERE state = 3 AND gate LIKE 'budget:%';
    RESET ROLE;
END $$;
-- +goose StatementEnd
DROP TABLE presumed_spends, budget_spends, budgets;
ALTER TABLE tasks DROP COLUMN cost_micro;
DROP TYPE task_wire_4;
