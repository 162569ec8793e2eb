-- When a lane is open; no window: always.

-- +goose Up
ALTER TABLE lanes ADD COLUMN open_windows jsonb NOT NULL DEFAULT '[]';

-- +goose Down
ALTER TABLE lanes DROP COLUMN open_windows;
