-- +goose Up

-- A worker that says nothing of its models or permissions takes tasks of all; those known before said what they have.
ALTER TABLE workers
    ADD COLUMN any_model  boolean NOT NULL DEFAULT false,
    ADD COLUMN any_permit boolean NOT NULL DEFAULT false;

-- The last step of the schema that the program which decides knows: one that knows less does not follow it.
ALTER TABLE brain ADD COLUMN schema bigint NOT NULL DEFAULT 0;

-- +goose Down
ALTER TABLE brain DROP COLUMN schema;
ALTER TABLE workers
    DROP COLUMN any_model,
    DROP COLUMN any_permit;
