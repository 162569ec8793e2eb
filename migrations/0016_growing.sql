-- Bodies of more than a thousand tasks that wait for tasks outside: edges of staged rows (state 3) are judged when the row
-- enters; a body's cursor knows how many of them its rows have at most. And what workflows used of their budget of retries.

-- +goose Up
ALTER TABLE cursors ADD COLUMN wide int NOT NULL DEFAULT 0;
ALTER TABLE flow_spends ADD COLUMN retries bigint NOT NULL DEFAULT 0;
ALTER TABLE edges DROP CONSTRAINT edges_state_check;
ALTER TABLE edges ADD CONSTRAINT edges_state_check CHECK (state BETWEEN 0 AND 3) NOT VALID;

-- +goose Down
ALTER TABLE edges DROP CONSTRAINT edges_state_check;
ALTER TABLE edges ADD CONSTRAINT edges_state_check CHECK (state BETWEEN 0 AND 2);
ALTER TABLE flow_spends DROP COLUMN retries;
ALTER TABLE cursors DROP COLUMN wide;
