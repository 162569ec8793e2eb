-- The raw life cycle: what a batch of tasks costs PostgreSQL itself. Sections are split at the lines of dashes.
--------------------------------------------------------------------------------
CREATE TABLE raw_tasks (
    id      uuid PRIMARY KEY,
    state   smallint NOT NULL,
    payload text NOT NULL,
    worker  uuid,
    result  text
);
-------------------------------------------------------------------------------- insert
INSERT INTO raw_tasks (id, state, payload) SELECT id, 0, payload FROM unnest($1::uuid[], $2::text[]) t (id, payload);
-------------------------------------------------------------------------------- start
UPDATE raw_tasks t SET state = 1, worker = s.worker FROM unnest($1::uuid[], $2::uuid[]) s (id, worker) WHERE t.id = s.id;
-------------------------------------------------------------------------------- finish
UPDATE raw_tasks t SET state = 2, result = s.result FROM unnest($1::uuid[], $2::text[]) s (id, result) WHERE t.id = s.id;
