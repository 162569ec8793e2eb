-- What looks after the rows, and what it found.

-- +goose Up
CREATE TABLE sweeps (
    name          text   PRIMARY KEY,
    every_seconds int    NOT NULL,
    last_run      bigint NOT NULL,
    found         bigint NOT NULL, -- in the last run
    total         bigint NOT NULL  -- ever
) WITH (fillfactor = 50);

-- +goose StatementBegin
DO $$
DECLARE
    engine text := quote_ident(current_database() || '_engine');
BEGIN
    ALTER TABLE sweeps ENABLE ROW LEVEL SECURITY;
    ALTER TABLE sweeps FORCE ROW LEVEL SECURITY;
    EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON sweeps TO %s', engine);
    EXECUTE format('CREATE POLICY engine ON sweeps TO %s USING (true) WITH CHECK (true)', engine);
END $$;
-- +goose StatementEnd

-- +goose Down
DROP TABLE sweeps;
