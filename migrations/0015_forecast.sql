-- What runs of schedules make, as learned from those that ended, and by what forecasts were off.

-- +goose Up
ALTER TABLE schedule_states ADD COLUMN profile json NOT NULL DEFAULT '{}'; -- models.RunProfile

CREATE TABLE forecast_corrections (
    pool    text     NOT NULL,
    kind    smallint NOT NULL,
    at      bigint   NOT NULL,
    factors bytea    NOT NULL, -- one for each five minutes of the day
    PRIMARY KEY (pool, kind)
) WITH (fillfactor = 50);

-- +goose StatementBegin
DO $$
DECLARE
    engine text := quote_ident(current_database() || '_engine');
BEGIN
    ALTER TABLE forecast_corrections ENABLE ROW LEVEL SECURITY;
    ALTER TABLE forecast_corrections FORCE ROW LEVEL SECURITY;
    EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON forecast_corrections TO %s', engine);
    EXECUTE format('CREATE POLICY engine ON forecast_corrections TO %s USING (true) WITH CHECK (true)', engine);
END $$;
-- +goose StatementEnd

-- +goose Down
DROP TABLE forecast_corrections;
ALTER TABLE schedule_states DROP COLUMN profile;
