-- What tasks of a lane get that say nothing themselves: models.LaneDefaults as JSON; NULL: nothing.

-- +goose Up
ALTER TABLE lanes ADD COLUMN defaults jsonb;

-- +goose Down
ALTER TABLE lanes DROP COLUMN defaults;
