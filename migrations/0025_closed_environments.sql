-- +goose Up

-- When an environment was deleted; 0: it is there. What was in it stays, and its name is free again.
ALTER TABLE environments
    ADD COLUMN closed_at bigint NOT NULL DEFAULT 0,
    DROP CONSTRAINT environments_tenant_name_key;
CREATE UNIQUE INDEX environments_tenant_name ON environments (tenant, name) WHERE closed_at = 0;

-- +goose Down
DROP INDEX environments_tenant_name;
UPDATE environments SET name = name || '-' || env WHERE closed_at > 0;
ALTER TABLE environments
    DROP COLUMN closed_at,
    ADD UNIQUE (tenant, name);
