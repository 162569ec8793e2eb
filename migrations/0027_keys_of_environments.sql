-- The numbers of the environments that a key was made for: one made later under the name of a deleted one is another. NULL: the
-- key is older than this, and which were deleted since is told by the clock.

-- +goose Up
ALTER TABLE api_keys ADD COLUMN envs int[];

-- +goose Down
ALTER TABLE api_keys DROP COLUMN envs;
