-- Triggers and items of queues: messages that wait for a schedule of kind event or drain. A message is written once and never
-- changed. What has read how far is a mark, and what one run or task took is a stretch of numbers: consuming a thousand
-- messages writes two rows.

-- +goose Up
CREATE TABLE messages (
    source  smallint NOT NULL CHECK (source BETWEEN 0 AND 1), -- 0 a trigger, 1 an item of a queue
    env     int      NOT NULL,
    seq     bigint   NOT NULL, -- the batch × 2^20 and the place in it: rises with each commit
    at      bigint   NOT NULL,
    id      uuid     NOT NULL,
    matched int      NOT NULL, -- schedules that it was for
    size    int      NOT NULL, -- bytes of data
    name    text     NOT NULL, -- the trigger's or the queue's
    key     text,              -- counts once in 24 hours
    data    text     NOT NULL,
    PRIMARY KEY (source, env, name, seq) INCLUDE (at)
);
CREATE UNIQUE INDEX messages_id ON messages (id);
CREATE INDEX messages_key ON messages (env, source, name, key, seq) WHERE key IS NOT NULL;
CREATE INDEX messages_at ON messages USING brin (at) WITH (autosummarize = on); -- written in its order: next to free

-- How far a feed was read: the triggers of a name by an event schedule, or a queue by whoever drains it (schedule zero).
CREATE TABLE feed_marks (
    env      int      NOT NULL,
    source   smallint NOT NULL CHECK (source BETWEEN 0 AND 1),
    name     text     NOT NULL,
    schedule uuid     NOT NULL,
    after    bigint   NOT NULL, -- messages up to here are taken, or came before the schedule
    at       bigint   NOT NULL,
    PRIMARY KEY (env, source, name, schedule)
) WITH (fillfactor = 70);

-- The stretch of messages that a run took, or one task of it.
CREATE TABLE takes (
    env    int      NOT NULL,
    run    uuid     NOT NULL,
    n      int      NOT NULL,
    source smallint NOT NULL CHECK (source BETWEEN 0 AND 1),
    count  int      NOT NULL,
    bytes  bigint   NOT NULL, -- of their data
    first  bigint   NOT NULL, -- both inclusive
    last   bigint   NOT NULL,
    task   uuid,              -- NULL: none was made
    name   text     NOT NULL,
    PRIMARY KEY (env, run, n)
);
CREATE INDEX takes_task ON takes (env, task) WHERE task IS NOT NULL;
CREATE INDEX takes_last ON takes (env, source, name, last);

CREATE TYPE message_wire AS (
    source smallint, env int, seq bigint, at bigint, id uuid, matched int, size int, name text, key text, data text
);

-- +goose StatementBegin
DO $$
BEGIN
    ALTER TABLE messages ALTER COLUMN data SET COMPRESSION lz4;
EXCEPTION WHEN feature_not_supported THEN
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
    FOREACH t IN ARRAY ARRAY['messages', 'feed_marks', 'takes'] LOOP
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
DROP TYPE message_wire;
DROP TABLE takes, feed_marks, messages;
