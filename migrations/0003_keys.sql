-- Several keys a task, their order, and rates. A task with one concurrency key or none has NULL in the new columns and
-- stands in none of the new indexes. Every statement may be run again: the indexes are built beside what goes on, which no
-- transaction can hold.

-- +goose NO TRANSACTION
-- +goose Up

ALTER TABLE tasks ADD COLUMN IF NOT EXISTS order_key bigint; -- its place among the ordered tasks of its keys
ALTER TABLE tasks ADD COLUMN IF NOT EXISTS more_keys text;   -- keys beyond limit_key, as models.PackKeys writes them

DROP INDEX CONCURRENTLY IF EXISTS tasks_standing; -- those that were not finished
DROP INDEX CONCURRENTLY IF EXISTS tasks_parked_order;
DROP INDEX CONCURRENTLY IF EXISTS tasks_idle;
CREATE INDEX CONCURRENTLY tasks_standing ON tasks (env, id)
    WHERE state = 3 AND gate IS NULL AND (more_keys IS NOT NULL OR order_key IS NOT NULL);
CREATE INDEX CONCURRENTLY tasks_parked_order ON tasks (env, gate, order_key, id)
    WHERE state = 3 AND gate IS NOT NULL AND order_key IS NOT NULL;
CREATE INDEX CONCURRENTLY tasks_idle ON tasks (env, id) WHERE state IN (5, 7) AND order_key IS NOT NULL;

-- How often tasks that name a key may start.
CREATE TABLE IF NOT EXISTS rate_limits (
    env         int    NOT NULL,
    key         text   NOT NULL,
    most        bigint NOT NULL CHECK (most > 0),
    per_seconds bigint NOT NULL CHECK (per_seconds > 0),
    burst       bigint NOT NULL CHECK (burst >= 0), -- 0: as many as most
    from_batch  bigint NOT NULL, -- what passed in batches before this one does not count
    created_at  bigint NOT NULL,
    updated_at  bigint NOT NULL,
    version     bigint NOT NULL,
    PRIMARY KEY (env, key)
);

-- What passed in one batch, with what its bucket then held: rows that add up, so that none is written twice.
CREATE TABLE IF NOT EXISTS rate_passes (
    env    int    NOT NULL,
    key    text   NOT NULL,
    batch  bigint NOT NULL,
    at     bigint NOT NULL,
    n      bigint NOT NULL,
    credit bigint NOT NULL,
    PRIMARY KEY (env, key, batch)
);

-- +goose StatementBegin
DO $$
BEGIN
    CREATE TYPE task_wire_3 AS (
        env int, lane int, class int, state smallint, priority smallint, flags smallint,
        attempt int, attempts_used int, max_attempts int, remaining int, killed int, hard_seconds int,
        age_key bigint, created_at bigint, updated_at bigint, id uuid,
        ready_at bigint, wake_at bigint, expires_at bigint, deadline bigint, latest_start bigint, started_at bigint,
        finished_at bigint, lease_until bigint, cards bigint, cancel_at bigint, estimate_ms bigint, leases_lost int, key_limit int, soft_seconds int, delay_seconds int,
        total_seconds int, depth int, total_until bigint, tokens bigint,
        workflow uuid, parent uuid, worker uuid, attempt_id uuid, token uuid, fingerprint uuid,
        gate text, key text, idem_key text, limit_key text, error_class text, order_key bigint, more_keys text,
        ref uuid, was smallint -- a change: the token and state it was decided on; a staged row: its staging
    );
EXCEPTION WHEN duplicate_object THEN
    NULL;
END $$;
-- +goose StatementEnd

-- +goose StatementBegin
DO $$
DECLARE
    app    text := quote_ident(current_database() || '_app');
    engine text := quote_ident(current_database() || '_engine');
    by_env text := 'env = ANY ((SELECT nullif(current_setting(''nightshift.envs'', true), '''')::int[])::int[])';
    t      text;
BEGIN
    FOREACH t IN ARRAY ARRAY['rate_limits', 'rate_passes'] LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', t);
        EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', t);
        EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON %I TO %s', t, engine);
        EXECUTE format('DROP POLICY IF EXISTS engine ON %I', t);
        EXECUTE format('CREATE POLICY engine ON %I TO %s USING (true) WITH CHECK (true)', t, engine);
        EXECUTE format('GRANT SELECT ON %I TO %s', t, app);
        EXECUTE format('DROP POLICY IF EXISTS app ON %I', t);
        EXECUTE format('CREATE POLICY app ON %I FOR SELECT TO %s USING (%s)', t, app, by_env);
    END LOOP;
END $$;
-- +goose StatementEnd

-- +goose Down
-- What has more than one key goes on with its first, and nothing stays parked behind a gate that nobody knows.
-- +goose StatementBegin
DO $$
BEGIN
    EXECUTE format('SET LOCAL ROLE %I', current_database() || '_engine');
    UPDATE tasks SET gate = 'key:' || limit_key WHERE state = 3 AND (gate LIKE 'keys:%' OR gate LIKE 'rate:%');
    RESET ROLE;
END $$;
-- +goose StatementEnd
DROP INDEX CONCURRENTLY IF EXISTS tasks_standing;
DROP INDEX CONCURRENTLY IF EXISTS tasks_parked_order;
DROP INDEX CONCURRENTLY IF EXISTS tasks_idle;
ALTER TABLE tasks DROP COLUMN IF EXISTS more_keys, DROP COLUMN IF EXISTS order_key;
DROP TABLE IF EXISTS rate_passes, rate_limits;
DROP TYPE IF EXISTS task_wire_3;
