-- Most rows that travel are plain tasks as they are born, start and end. Of the columns of task_wire they need a third,
-- and what a server reads of a row costs it more than what it writes.

-- +goose Up
CREATE TYPE birth_wire AS (
    env int, lane int, class int, state smallint, priority smallint, flags smallint,
    attempt int, attempts_used int, max_attempts int, hard_seconds int,
    age_key bigint, created_at bigint, updated_at bigint, id uuid, ready_at bigint, started_at bigint, lease_until bigint,
    cards bigint, estimate_ms bigint, worker uuid, attempt_id uuid, token uuid, idem_key text
);
CREATE TYPE move_wire AS (
    env int, id uuid, state smallint, was smallint, ref uuid, -- the state and token it was decided on
    attempt int, attempts_used int, updated_at bigint, started_at bigint, finished_at bigint, lease_until bigint,
    cards bigint, worker uuid, attempt_id uuid, token uuid
);

-- +goose Down
DROP TYPE birth_wire, move_wire;
