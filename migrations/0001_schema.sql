-- The whole lean schema. Instants are microseconds since 1970 UTC (bigint, NULL: none) where the engine writes them and
-- timestamptz where people do. Numbers of states are those of models.State and never change: 0 staged, 1 scheduled,
-- 2 pending, 3 ready, 4 running, 5 retry_wait, 6 cancel_requested, 7 dead_letter, 8 succeeded, 9 failed, 10 cancelled,
-- 11 expired, 12 skipped. Hot tables have no foreign keys; every index of tasks but its primary key is partial.

-- +goose Up

-- Who decides. Written by renewal and takeover alone; the loop only locks it.
CREATE TABLE brain (
    cell          smallint PRIMARY KEY,
    epoch         bigint      NOT NULL,
    renewed_at    timestamptz NOT NULL,
    address       text        NOT NULL,
    backend_pid   int,
    backend_start timestamptz
) WITH (fillfactor = 10);
INSERT INTO brain VALUES (1, 0, '-infinity', '', NULL, NULL);

-- One row a commit of a brain: gap-free and in commit order.
CREATE TABLE batches (
    cell  smallint NOT NULL,
    batch bigint   NOT NULL,
    epoch bigint   NOT NULL,
    at    bigint   NOT NULL,
    PRIMARY KEY (cell, batch)
);

-- What decisions read, written by decisions.

CREATE TABLE tenants (
    number     int PRIMARY KEY,
    id         uuid    NOT NULL UNIQUE,
    slug       text    NOT NULL UNIQUE,
    name       text    NOT NULL,
    weight     float8  NOT NULL CHECK (weight > 0),
    timezone   text    NOT NULL,
    suspended  boolean NOT NULL,
    created_at bigint  NOT NULL,
    updated_at bigint  NOT NULL,
    version    bigint  NOT NULL
);

CREATE TABLE environments (
    env        int PRIMARY KEY,
    id         uuid    NOT NULL UNIQUE,
    tenant     int     NOT NULL,
    name       text    NOT NULL,
    kind       text    NOT NULL,
    paused     boolean NOT NULL,
    reason     text    NOT NULL,
    created_at bigint  NOT NULL,
    updated_at bigint  NOT NULL,
    version    bigint  NOT NULL,
    UNIQUE (tenant, name)
);

CREATE TABLE kinds (
    name       smallint PRIMARY KEY CHECK (name BETWEEN 0 AND 3),
    precedence int     NOT NULL,
    weight     float8  NOT NULL CHECK (weight > 0),
    min_share  float8  NOT NULL CHECK (min_share BETWEEN 0 AND 1),
    elastic    boolean NOT NULL,
    yields_to  text[]  NOT NULL,
    max_hold   int     NOT NULL,
    updated_at bigint  NOT NULL,
    version    bigint  NOT NULL
);

CREATE TABLE lanes (
    number         int PRIMARY KEY,
    env            int      NOT NULL,
    name           text     NOT NULL,
    kind           smallint NOT NULL CHECK (kind BETWEEN 0 AND 3),
    weight         float8   NOT NULL CHECK (weight > 0),
    max_concurrent int      NOT NULL,
    high_water     int      NOT NULL,
    task_types     text[]   NOT NULL,
    paused         boolean  NOT NULL,
    draining       boolean  NOT NULL,
    reason         text     NOT NULL,
    first          boolean  NOT NULL,
    description    text     NOT NULL,
    owner          text     NOT NULL,
    runbook_url    text     NOT NULL,
    created_at     bigint   NOT NULL,
    updated_at     bigint   NOT NULL,
    version        bigint   NOT NULL,
    UNIQUE (env, name)
);

-- The largest number that anything of a name ever had: numbers of what was deleted are not given again.
CREATE TABLE highest (
    name   text PRIMARY KEY,
    number int NOT NULL
);

CREATE TABLE classes (
    number int PRIMARY KEY,
    digest bytea NOT NULL UNIQUE CHECK (octet_length(digest) = 32), -- SHA-256 of the canonical text
    type   text  NOT NULL,
    spec   jsonb NOT NULL
);

CREATE TABLE workers (
    id            uuid PRIMARY KEY,
    tenant        int        NOT NULL, -- 0: serves every tenant
    env           int        NOT NULL,
    key_id        text       NOT NULL,
    name          text       NOT NULL,
    instance      text       NOT NULL,
    version       text       NOT NULL,
    pool          text       NOT NULL,
    task_types    text[]     NOT NULL,
    lanes         text[]     NOT NULL,
    kinds         smallint[] NOT NULL,
    cpu_milli     bigint     NOT NULL,
    memory_mb     bigint     NOT NULL,
    disk_mb       bigint     NOT NULL,
    gpus          jsonb      NOT NULL,
    slots         int        NOT NULL,
    kind_slots    jsonb      NOT NULL,
    models        text[]     NOT NULL,
    permissions   text[]     NOT NULL,
    labels        jsonb      NOT NULL,
    lease_seconds int        NOT NULL,
    session       uuid       NOT NULL,
    state         smallint   NOT NULL CHECK (state BETWEEN 0 AND 2),
    draining      boolean    NOT NULL,
    last_seen     bigint     NOT NULL,
    created_at    bigint     NOT NULL,
    updated_at    bigint     NOT NULL,
    replaced      bigint[]   NOT NULL,
    utilization   text
) WITH (fillfactor = 70);
CREATE UNIQUE INDEX workers_instance ON workers (tenant, instance) WHERE state < 2;

CREATE TABLE virtual_times (
    pool   text     NOT NULL,
    kind   smallint NOT NULL,
    tenant int      NOT NULL, -- 0: the pool's own
    time   float8   NOT NULL,
    PRIMARY KEY (pool, kind, tenant)
) WITH (fillfactor = 50);

-- Histograms of run times, so that a new brain need not learn them again.
CREATE TABLE estimates (
    tenant int    NOT NULL,
    class  int    NOT NULL,
    at     bigint NOT NULL,
    counts bytea  NOT NULL,
    PRIMARY KEY (tenant, class)
) WITH (fillfactor = 50);

-- Tasks. The columns stand in the order that wastes least on alignment.

CREATE TABLE tasks (
    env           int      NOT NULL,
    lane          int      NOT NULL,
    class         int      NOT NULL,
    state         smallint NOT NULL,
    priority      smallint NOT NULL,
    flags         smallint NOT NULL,
    cell          smallint NOT NULL DEFAULT 1,
    attempt       int      NOT NULL,
    attempts_used int      NOT NULL,
    max_attempts  int      NOT NULL,
    remaining     int      NOT NULL,
    killed        int      NOT NULL,
    hard_seconds  int      NOT NULL,
    age_key       bigint   NOT NULL,
    created_at    bigint   NOT NULL,
    updated_at    bigint   NOT NULL,
    id            uuid     NOT NULL,
    ready_at      bigint,
    wake_at       bigint,
    expires_at    bigint,
    deadline      bigint,
    latest_start  bigint, -- rank in the second order of its line
    started_at    bigint,
    finished_at   bigint,
    lease_until   bigint,
    cards         bigint, -- which of the worker's cards, a bit each
    cancel_at     bigint,
    estimate_ms   bigint,
    leases_lost   int,
    key_limit     int,
    soft_seconds  int,
    delay_seconds int,
    total_seconds int,
    depth         int,    -- how many parents stand above it
    total_until   bigint,
    workflow      uuid,
    parent        uuid,
    worker        uuid,
    attempt_id    uuid,
    token         uuid,
    fingerprint   uuid,
    staging       uuid, -- the body it was staged with
    gate          text,
    key           text,
    idem_key      text,
    limit_key     text,
    error_class   text,
    PRIMARY KEY (env, id),
    -- Running rows alone (4 and 6) have a token, ready ones alone a gate, counters never fall below 0. It is one small
    -- expression because the server reads a CHECK anew in every statement: four larger ones were a ninth of a batch of one.
    CONSTRAINT tasks_sound CHECK ((state & 13 = 4) = (token IS NOT NULL) AND (gate IS NULL OR state = 3) AND remaining | killed >= 0
        AND state < 13)
) WITH (fillfactor = 90, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_insert_scale_factor = 0.05,
    autovacuum_analyze_scale_factor = 0.05);

CREATE INDEX tasks_line ON tasks (lane, env, class, age_key, id) WHERE state = 3 AND gate IS NULL;
CREATE INDEX tasks_line_start ON tasks (lane, env, class, latest_start, id)
    WHERE state = 3 AND gate IS NULL AND latest_start IS NOT NULL;
CREATE INDEX tasks_line_key ON tasks (lane, env, class, limit_key) INCLUDE (key_limit)
    WHERE state = 3 AND gate IS NULL AND limit_key IS NOT NULL;
CREATE INDEX tasks_parked ON tasks (env, gate, lane, class, age_key, id) INCLUDE (key_limit)
    WHERE state = 3 AND gate IS NOT NULL;
CREATE INDEX tasks_timer ON tasks (LEAST(wake_at, expires_at), id)
    WHERE state IN (1, 2, 3, 5) AND LEAST(wake_at, expires_at) IS NOT NULL;
CREATE INDEX tasks_running ON tasks (worker) WHERE state IN (4, 6);
CREATE INDEX tasks_freed ON tasks (env, id) WHERE state = 2 AND (remaining = 0 OR killed > 0);
CREATE INDEX tasks_dead ON tasks (env, fingerprint, id) WHERE state = 7;
CREATE INDEX tasks_workflow ON tasks (env, workflow, id) WHERE workflow IS NOT NULL;
CREATE UNIQUE INDEX tasks_children ON tasks (env, parent, key) WHERE parent IS NOT NULL;
CREATE INDEX tasks_by_parent ON tasks (env, parent, id) WHERE parent IS NOT NULL AND flags & 32 = 0; -- not detached
CREATE UNIQUE INDEX tasks_idem ON tasks (env, idem_key) WHERE idem_key IS NOT NULL AND state BETWEEN 1 AND 8;
CREATE INDEX tasks_staged ON tasks (staging, id) WHERE state = 0;

-- What was submitted, written once.
CREATE TABLE specs (
    env        int  NOT NULL,
    id         uuid NOT NULL,
    redrive_of uuid,
    input      text NOT NULL,
    payload    text,
    trace      text,
    PRIMARY KEY (env, id)
);

CREATE TABLE labels (
    env   int  NOT NULL,
    task  uuid NOT NULL,
    key   text NOT NULL,
    value text NOT NULL,
    PRIMARY KEY (env, key, value, task)
);
CREATE INDEX labels_task ON labels (env, task); -- they go with their task

-- to_task waits for from_task. state: 0 open, 1 fired, 2 killed; it leaves open at most once.
CREATE TABLE edges (
    env       int      NOT NULL,
    from_task uuid     NOT NULL,
    to_task   uuid     NOT NULL,
    fires_on  smallint NOT NULL CHECK (fires_on BETWEEN 0 AND 3), -- 0 succeeded, 1 failed, 2 finished, 3 a child to its parent
    state     smallint NOT NULL CHECK (state BETWEEN 0 AND 2),
    PRIMARY KEY (env, to_task, from_task, fires_on)
);
CREATE INDEX edges_from ON edges (env, from_task, to_task, fires_on); -- not partial: so a change of state stays HOT

-- Ends of tasks with so many edges that they move in several batches; after: where to go on.
CREATE TABLE unfired (
    env   int      NOT NULL,
    task  uuid     NOT NULL,
    state smallint NOT NULL,
    after uuid     NOT NULL,
    PRIMARY KEY (env, task)
) WITH (fillfactor = 50);

-- What was changed of a task's input after its spec was written; NULL: as the spec says.
CREATE TABLE overrides (
    env     int  NOT NULL,
    task    uuid NOT NULL,
    input   text,
    payload text,
    PRIMARY KEY (env, task)
);

-- Signals to running tasks, until their workers were told.
CREATE TABLE signals (
    id   uuid PRIMARY KEY,
    env  int  NOT NULL,
    task uuid NOT NULL,
    name text NOT NULL,
    data text
);

-- How good results were, as judged afterwards; the last word of each source.
CREATE TABLE qualities (
    env    int    NOT NULL,
    task   uuid   NOT NULL,
    source text   NOT NULL,
    score  float8 NOT NULL CHECK (score BETWEEN 0 AND 1),
    at     bigint NOT NULL,
    PRIMARY KEY (env, task, source)
);

-- Who got a dedupe key last; whether it still holds it, its task's row says.
CREATE TABLE dedupes (
    env         int      NOT NULL,
    key         text     NOT NULL,
    task        uuid     NOT NULL,
    while       smallint NOT NULL CHECK (while BETWEEN 0 AND 2), -- 0 queued, 1 live, 2 succeeded
    ttl_seconds int      NOT NULL,
    PRIMARY KEY (env, key)
);
CREATE INDEX dedupes_task ON dedupes (env, task); -- they go with their task

-- Values that tasks move on as they go.
CREATE TABLE watermarks (
    env     int    NOT NULL,
    name    text   NOT NULL,
    value   text   NOT NULL,
    version bigint NOT NULL,
    at      bigint NOT NULL,
    PRIMARY KEY (env, name)
);

-- Lines that attempts wrote, kept two weeks. The replica that received them writes them.
CREATE TABLE logs (
    id      bigint GENERATED ALWAYS AS IDENTITY,
    env     int    NOT NULL,
    task    uuid   NOT NULL,
    attempt int    NOT NULL,
    at      bigint NOT NULL,
    level   text   NOT NULL,
    message text   NOT NULL,
    PRIMARY KEY (env, task, id)
);
CREATE INDEX logs_id ON logs (id);

-- One row an attempt, written when it ends. outcome: models.Outcome.
CREATE TABLE attempts (
    env            int      NOT NULL,
    n              int      NOT NULL,
    task           uuid     NOT NULL,
    id             uuid     NOT NULL,
    token          uuid     NOT NULL, -- of the lease it ran under
    worker         uuid     NOT NULL,
    started_at     bigint   NOT NULL,
    finished_at    bigint   NOT NULL,
    charged_ms     bigint   NOT NULL,
    outcome        smallint NOT NULL CHECK (outcome BETWEEN 1 AND 7),
    pool           text     NOT NULL,
    worker_version text,
    model          text,
    error          text,
    usage          text,
    result         text,
    PRIMARY KEY (env, task, n)
);
CREATE INDEX attempts_finished ON attempts USING brin (finished_at) WITH (autosummarize = on); -- written in its order: next to free

CREATE TABLE progress (
    env        int  NOT NULL,
    task       uuid NOT NULL,
    at         bigint NOT NULL,
    progress   text,
    checkpoint text,
    PRIMARY KEY (env, task)
) WITH (fillfactor = 70);

CREATE TABLE workflows (
    env         int      NOT NULL,
    id          uuid     NOT NULL,
    state       smallint NOT NULL CHECK (state BETWEEN 0 AND 4),
    priority    smallint NOT NULL,
    cancelling  boolean  NOT NULL,
    created_at  bigint   NOT NULL,
    updated_at  bigint   NOT NULL,
    finished_at bigint,
    name        text     NOT NULL,
    counts      int[]    NOT NULL, -- by state, as last saved
    input       text     NOT NULL,
    stops       boolean  NOT NULL, -- on_failure: stop
    over        boolean  NOT NULL, -- a budget ended it
    gate        smallint NOT NULL, -- why nothing of it starts: 1 paused, 2 stopped, 4 spent; bits
    budget      jsonb    NOT NULL, -- its limits
    depth       int      NOT NULL,
    grown       int      NOT NULL, -- how often tasks were added
    ends_at     bigint,            -- by its run time
    rerun_of    uuid,
    PRIMARY KEY (env, id)
) WITH (fillfactor = 70);
CREATE INDEX workflows_live ON workflows (env, id) WHERE state IN (0, 4);
CREATE INDEX workflows_held ON workflows (env, id) WHERE gate > 0 OR (ends_at IS NOT NULL AND state IN (0, 4));

-- What workflows used, as rows that add up: one a batch.
CREATE TABLE flow_spends (
    env        int    NOT NULL,
    workflow   uuid   NOT NULL,
    batch      bigint NOT NULL,
    cost_micro bigint NOT NULL,
    tokens     bigint NOT NULL,
    attempts   bigint NOT NULL,
    PRIMARY KEY (env, workflow, batch)
);

-- When work should exist: what people say, each version of it, what stands, and the occurrences.
CREATE TABLE schedules (
    env        int    NOT NULL,
    id         uuid   NOT NULL,
    name       text   NOT NULL,
    rule       json   NOT NULL, -- models.ScheduleRule
    task       json   NOT NULL, -- the engine's template
    given      json   NOT NULL, -- the task as it was sent
    by         json   NOT NULL,
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL,
    version    bigint NOT NULL,
    PRIMARY KEY (env, id),
    UNIQUE (env, name)
);
CREATE TABLE schedule_versions (
    env      int    NOT NULL,
    schedule uuid   NOT NULL,
    version  bigint NOT NULL,
    name     text   NOT NULL,
    rule     json   NOT NULL,
    task     json   NOT NULL,
    given    json   NOT NULL,
    by       json   NOT NULL,
    at       bigint NOT NULL,
    PRIMARY KEY (env, schedule, version)
);
CREATE TABLE schedule_states (
    env          int     NOT NULL,
    id           uuid    NOT NULL,
    enabled      boolean NOT NULL,
    paused_by    text    NOT NULL,
    pause_reason text    NOT NULL,
    mark         bigint  NOT NULL, -- what lies up to here is decided
    until        bigint  NOT NULL, -- of an outage that is worked through; 0: none is
    last_run     uuid    NOT NULL,
    last_outcome text    NOT NULL,
    last_for     bigint  NOT NULL,
    last_late_ms bigint  NOT NULL,
    last_success bigint  NOT NULL,
    last_end     bigint  NOT NULL,
    failures     int     NOT NULL,
    PRIMARY KEY (env, id)
) WITH (fillfactor = 70);
CREATE TABLE schedule_runs (
    env           int      NOT NULL,
    id            uuid     NOT NULL,
    schedule      uuid     NOT NULL,
    scheduled_for bigint   NOT NULL,
    origin        text     NOT NULL, -- timer, manual:<run>
    fired_at      bigint   NOT NULL,
    outcome       text     NOT NULL, -- empty while it waits for the run before it
    cause         text     NOT NULL,
    task          uuid,
    state         smallint NOT NULL, -- of the task, as it ended
    late_ms       bigint   NOT NULL,
    finished_at   bigint,
    PRIMARY KEY (env, id)
) WITH (fillfactor = 70);
CREATE UNIQUE INDEX schedule_runs_moment ON schedule_runs (env, schedule, scheduled_for, origin);
CREATE INDEX schedule_runs_list ON schedule_runs (env, schedule, id);
CREATE INDEX schedule_runs_open ON schedule_runs (env, id) WHERE finished_at IS NULL AND (task IS NOT NULL OR outcome = '');

-- Bodies too large for one command, until all their rows have entered.
CREATE TABLE stagings (
    id      uuid PRIMARY KEY,
    env     int     NOT NULL,
    tasks   bigint  NOT NULL,
    at      bigint  NOT NULL,
    flipped boolean NOT NULL,
    dropped boolean NOT NULL DEFAULT false -- it never flipped in time: its rows are being deleted
);

CREATE TABLE cursors (
    id       uuid PRIMARY KEY,
    env      int      NOT NULL,
    kind     smallint NOT NULL CHECK (kind BETWEEN 0 AND 15),
    finished boolean  NOT NULL,
    target   uuid     NOT NULL,
    after    uuid,
    until    uuid,
    matched  bigint   NOT NULL,
    done     bigint   NOT NULL,
    failed   bigint   NOT NULL,
    at       bigint   NOT NULL,
    reason   text     NOT NULL,
    actor    jsonb    NOT NULL,
    action   smallint NOT NULL DEFAULT 0, -- of a bulk action: 0 retry, 1 discard, 2 cancel, 3 reprioritise, 4 move
    priority smallint NOT NULL DEFAULT 0,
    lane     text     NOT NULL DEFAULT '',
    patch    text,
    rate     float8   NOT NULL DEFAULT 0,
    next_at  bigint   NOT NULL DEFAULT 0,
    paused   boolean  NOT NULL DEFAULT false,
    dropped  boolean  NOT NULL DEFAULT false
) WITH (fillfactor = 50);
CREATE INDEX cursors_open ON cursors (id) WHERE NOT finished;

-- The tasks that a bulk action was started for, listed by the replica that received it.
CREATE TABLE bulk_items (
    cursor uuid NOT NULL,
    env    int  NOT NULL,
    task   uuid NOT NULL,
    PRIMARY KEY (cursor, task)
);

-- Commands that create no row of their own id, to recognise a resend; kept ten minutes.
CREATE TABLE done (
    command uuid PRIMARY KEY,
    batch   bigint NOT NULL,
    at      bigint NOT NULL
);

-- Calls with an Idempotency-Key. The engine writes what was made; the edge adds the sealed answer.
CREATE TABLE once (
    scope   text   NOT NULL,
    key     text   NOT NULL,
    request uuid   NOT NULL,
    at      bigint NOT NULL,
    status  int,
    made    text,
    body    bytea,
    PRIMARY KEY (scope, key)
);
CREATE INDEX once_at ON once (at);

-- One packed row a batch and environment, a JSON array; env 0 is the platform's.
CREATE TABLE events (
    batch bigint NOT NULL,
    env   int    NOT NULL,
    at    bigint NOT NULL,
    items text   NOT NULL,
    PRIMARY KEY (batch, env)
);

CREATE TABLE audit (
    id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant     int    NOT NULL, -- 0: the platform's
    env        int    NOT NULL,
    at         bigint NOT NULL,
    actor_kind text   NOT NULL,
    actor_id   text   NOT NULL,
    ip         text   NOT NULL,
    request_id text   NOT NULL,
    action     text   NOT NULL,
    object     text   NOT NULL,
    reason     text   NOT NULL,
    before     text,
    after      text
);
CREATE INDEX audit_tenant ON audit (tenant, id);

-- People's things. Their rows and the brain's never mix.

CREATE TABLE users (
    id            uuid PRIMARY KEY,
    email         text        NOT NULL,
    name          text        NOT NULL DEFAULT '',
    password_hash text        NOT NULL,
    platform      boolean     NOT NULL DEFAULT false,
    disabled_at   timestamptz,
    created_at    timestamptz NOT NULL,
    updated_at    timestamptz NOT NULL
);
CREATE UNIQUE INDEX users_email ON users (lower(email));

CREATE TABLE memberships (
    "user"     uuid        NOT NULL REFERENCES users ON DELETE CASCADE,
    tenant     int         NOT NULL,
    role       text        NOT NULL,
    created_at timestamptz NOT NULL,
    PRIMARY KEY ("user", tenant)
);
CREATE INDEX memberships_tenant ON memberships (tenant);

CREATE TABLE sessions (
    token_sha256 bytea PRIMARY KEY CHECK (octet_length(token_sha256) = 32),
    "user"       uuid        NOT NULL REFERENCES users ON DELETE CASCADE,
    csrf_sha256  bytea,
    ip           text        NOT NULL DEFAULT '',
    user_agent   text        NOT NULL DEFAULT '',
    created_at   timestamptz NOT NULL,
    last_seen_at timestamptz,
    expires_at   timestamptz NOT NULL
);
CREATE INDEX sessions_user ON sessions ("user");
CREATE INDEX sessions_expires ON sessions (expires_at);

CREATE TABLE api_keys (
    id              text PRIMARY KEY,
    tenant          int, -- NULL: the platform's
    name            text        NOT NULL,
    secret_sha256   bytea       NOT NULL CHECK (octet_length(secret_sha256) = 32),
    previous_sha256 bytea       CHECK (octet_length(previous_sha256) = 32),
    previous_until  timestamptz,
    scopes          text[]      NOT NULL,
    environments    text[]      NOT NULL DEFAULT '{}',
    lanes           text[]      NOT NULL DEFAULT '{}',
    permissions     text[]      NOT NULL DEFAULT '{}',
    created_by      text        NOT NULL DEFAULT '',
    expires_at      timestamptz,
    revoked_at      timestamptz,
    created_at      timestamptz NOT NULL,
    updated_at      timestamptz NOT NULL,
    last_used_at    timestamptz
);
CREATE INDEX api_keys_tenant ON api_keys (tenant, id);

CREATE TABLE signing_keys (
    kid         text PRIMARY KEY,
    private_key bytea       NOT NULL, -- sealed
    public_key  bytea       NOT NULL,
    created_at  timestamptz NOT NULL,
    retire_at   timestamptz
);

CREATE TABLE replicas (
    id         uuid PRIMARY KEY,
    address    text        NOT NULL,
    pid        int         NOT NULL,
    version    text        NOT NULL DEFAULT '',
    started_at timestamptz NOT NULL,
    last_seen  timestamptz NOT NULL
) WITH (fillfactor = 50);

-- What a sealed value opens with the right NIGHTSHIFT_SECRET_KEY: how a wrong key is noticed at the start.
CREATE TABLE vault (
    name   text PRIMARY KEY,
    sealed bytea NOT NULL
);

-- How rows travel to the hot statements: one array of a composite type a statement, which costs the server a third of
-- one array a column. A type never changes: a later step that needs another column makes a new type beside the old.

CREATE TYPE task_wire AS (
    env int, lane int, class int, state smallint, priority smallint, flags smallint,
    attempt int, attempts_used int, max_attempts int, remaining int, killed int, hard_seconds int,
    age_key bigint, created_at bigint, updated_at bigint, id uuid,
    ready_at bigint, wake_at bigint, expires_at bigint, deadline bigint, latest_start bigint, started_at bigint,
    finished_at bigint, lease_until bigint, cards bigint, cancel_at bigint, estimate_ms bigint, leases_lost int, key_limit int, soft_seconds int, delay_seconds int,
    total_seconds int, depth int, total_until bigint,
    workflow uuid, parent uuid, worker uuid, attempt_id uuid, token uuid, fingerprint uuid,
    gate text, key text, idem_key text, limit_key text, error_class text,
    ref uuid, was smallint -- a change: the token and state it was decided on; a staged row: its staging
);
CREATE TYPE spec_wire AS (env int, id uuid, redrive_of uuid, input text, payload text, trace text);
CREATE TYPE label_wire AS (env int, task uuid, key text, value text);
CREATE TYPE edge_wire AS (env int, from_task uuid, to_task uuid, fires_on smallint, state smallint);
CREATE TYPE attempt_wire AS (
    env int, n int, task uuid, id uuid, token uuid, worker uuid, started_at bigint, finished_at bigint, charged_ms bigint,
    outcome smallint, pool text, worker_version text, model text, error text, usage text, result text
);
CREATE TYPE end_wire AS (env int, task uuid, succeeded smallint, failed smallint, finished smallint, state smallint, after uuid);
CREATE TYPE event_wire AS (env int, items text);
CREATE TYPE line_wire AS (lane int, env int, class int, gate text, age_key bigint, id uuid, most int);

-- A statement whose count of rows is not the plan's raises, so that the COMMIT behind it in the pipeline does nothing.
-- +goose StatementBegin
CREATE FUNCTION expect_rows(what text, got bigint, want bigint) RETURNS bigint LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    IF got IS DISTINCT FROM want THEN
        RAISE EXCEPTION '%: % rows, not %', what, got, want USING ERRCODE = 'NS002';
    END IF;
    RETURN got;
END $$;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE FUNCTION expect_brain(epoch bigint, got bigint) RETURNS bigint LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    IF got IS DISTINCT FROM 1 THEN
        RAISE EXCEPTION 'epoch % is over', epoch USING ERRCODE = 'NS001';
    END IF;
    RETURN got;
END $$;
-- +goose StatementEnd

-- Large values are compressed by the faster method where this server has it.
-- +goose StatementBegin
DO $$
BEGIN
    ALTER TABLE specs ALTER COLUMN payload SET COMPRESSION lz4;
    ALTER TABLE specs ALTER COLUMN input SET COMPRESSION lz4;
    ALTER TABLE attempts ALTER COLUMN result SET COMPRESSION lz4;
    ALTER TABLE attempts ALTER COLUMN error SET COMPRESSION lz4;
    ALTER TABLE progress ALTER COLUMN checkpoint SET COMPRESSION lz4;
    ALTER TABLE events ALTER COLUMN items SET COMPRESSION lz4;
EXCEPTION WHEN feature_not_supported THEN
    NULL;
END $$;
-- +goose StatementEnd

-- Row level security. <db>_engine sees all; <db>_app sees the tenant and environments that its transaction named; the
-- login itself, though it owns the tables, sees nothing.
-- +goose StatementBegin
DO $$
DECLARE
    app     text := quote_ident(current_database() || '_app');
    engine  text := quote_ident(current_database() || '_engine');
    by_env    text := 'env = ANY ((SELECT nullif(current_setting(''nightshift.envs'', true), '''')::int[])::int[])';
    by_tenant text := 'tenant = (SELECT nullif(current_setting(''nightshift.tenant'', true), '''')::int)';
    t       text;
BEGIN
    EXECUTE format('GRANT USAGE ON SCHEMA public TO %s, %s', app, engine);
    FOREACH t IN ARRAY ARRAY['brain', 'batches', 'tenants', 'environments', 'kinds', 'lanes', 'highest', 'classes', 'workers',
        'virtual_times', 'estimates', 'schedules', 'schedule_versions', 'schedule_states', 'schedule_runs', 'tasks', 'specs', 'labels', 'edges', 'unfired', 'attempts', 'progress', 'workflows', 'flow_spends', 'stagings', 'cursors',
        'overrides', 'signals', 'qualities', 'dedupes', 'logs', 'bulk_items', 'watermarks', 'done', 'once', 'events', 'audit', 'users', 'memberships', 'sessions', 'api_keys', 'signing_keys', 'replicas', 'vault']
    LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', t);
        EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', t);
        EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON %I TO %s', t, engine);
        EXECUTE format('CREATE POLICY engine ON %I TO %s USING (true) WITH CHECK (true)', t, engine);
    END LOOP;
    FOREACH t IN ARRAY ARRAY['environments', 'lanes', 'schedules', 'schedule_versions', 'schedule_states', 'schedule_runs', 'tasks', 'specs', 'labels', 'edges', 'attempts', 'progress',
        'overrides', 'qualities', 'logs', 'watermarks', 'workflows', 'flow_spends', 'stagings', 'cursors', 'events']
    LOOP
        EXECUTE format('GRANT SELECT ON %I TO %s', t, app);
        EXECUTE format('CREATE POLICY app ON %I FOR SELECT TO %s USING (%s)', t, app,
            CASE t WHEN 'environments' THEN by_tenant ELSE by_env END);
    END LOOP;
    FOREACH t IN ARRAY ARRAY['audit', 'workers'] LOOP
        EXECUTE format('GRANT SELECT ON %I TO %s', t, app);
        EXECUTE format('CREATE POLICY app ON %I FOR SELECT TO %s USING (%s)', t, app, by_tenant);
    END LOOP;
    EXECUTE format('GRANT SELECT ON tenants TO %s', app);
    EXECUTE format('CREATE POLICY app ON tenants FOR SELECT TO %s USING (%s)', app, replace(by_tenant, 'tenant =', 'number ='));
    FOREACH t IN ARRAY ARRAY['kinds', 'classes', 'batches', 'brain'] LOOP -- the platform's, no secret to anybody
        EXECUTE format('GRANT SELECT ON %I TO %s', t, app);
        EXECUTE format('CREATE POLICY app ON %I FOR SELECT TO %s USING (true)', t, app);
    END LOOP;
    FOREACH t IN ARRAY ARRAY['api_keys', 'memberships'] LOOP
        EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON %I TO %s', t, app);
        EXECUTE format('CREATE POLICY app ON %I TO %s USING (%s) WITH CHECK (%s)', t, app, by_tenant, by_tenant);
    END LOOP;
    EXECUTE format('GRANT SELECT ON users TO %s', app);
    EXECUTE format('CREATE POLICY app ON users FOR SELECT TO %s USING (id IN (SELECT m."user" FROM memberships m))', app);
    EXECUTE format('GRANT USAGE ON ALL SEQUENCES IN SCHEMA public TO %s', engine);
END $$;
-- +goose StatementEnd

-- +goose Down
DROP TABLE vault, replicas, signing_keys, api_keys, sessions, memberships, users, audit, events, once, done, cursors,
    stagings, flow_spends, workflows, progress, logs, watermarks, bulk_items, dedupes, qualities, signals, overrides, attempts, unfired, edges, labels, specs, tasks, estimates, virtual_times, workers, classes, highest, lanes,
    schedules, schedule_versions, schedule_states, schedule_runs, kinds, environments, tenants, batches, brain;
DROP FUNCTION expect_rows, expect_brain;
DROP TYPE task_wire, spec_wire, label_wire, edge_wire, attempt_wire, end_wire, event_wire, line_wire;
