-- Lanes that yield to other lanes, and what is held back for the work of others.

-- +goose Up
ALTER TABLE lanes
    ADD COLUMN elastic   boolean NOT NULL DEFAULT false,
    ADD COLUMN yields_to text[]  NOT NULL DEFAULT '{}', -- names of lanes of its environment
    ADD COLUMN max_hold  int     NOT NULL DEFAULT 0;    -- seconds; 0: no bound

-- Since when: a new brain goes on with it, and nobody is told twice.
CREATE TABLE holds (
    lane  int    NOT NULL,
    pool  text   NOT NULL,
    env   int    NOT NULL,
    since bigint NOT NULL,
    task  uuid, -- the first of the lane, that was told to be held
    PRIMARY KEY (lane, pool)
);

-- +goose StatementBegin
DO $$
DECLARE
    app    text := quote_ident(current_database() || '_app');
    engine text := quote_ident(current_database() || '_engine');
BEGIN
    ALTER TABLE holds ENABLE ROW LEVEL SECURITY;
    ALTER TABLE holds FORCE ROW LEVEL SECURITY;
    EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON holds TO %s', engine);
    EXECUTE format('GRANT SELECT ON holds TO %s', app);
    EXECUTE format('CREATE POLICY engine ON holds TO %s USING (true) WITH CHECK (true)', engine);
    EXECUTE format('CREATE POLICY app ON holds FOR SELECT TO %s USING (env = ANY ((SELECT nullif(current_setting(''nightshift.envs'', true), '''')::int[])::int[]))', app);
END $$;
-- +goose StatementEnd

-- +goose Down
DROP TABLE holds;
ALTER TABLE lanes DROP COLUMN elastic, DROP COLUMN yields_to, DROP COLUMN max_hold;
