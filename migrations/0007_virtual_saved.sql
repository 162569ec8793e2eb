-- When virtual times were saved, and what a start is charged ahead: a new brain must know how much of the leases that
-- live through a takeover they hold already.
-- +goose Up
ALTER TABLE virtual_times
    ADD COLUMN saved_at bigint NOT NULL DEFAULT 0, -- 0: by a version that did not say
    ADD COLUMN span     float8 NOT NULL DEFAULT 0; -- of tenant 0 alone

-- +goose Down
ALTER TABLE virtual_times DROP COLUMN saved_at, DROP COLUMN span;
