-- Purpose: models that are gone. Index: models_pkey. Locks: the deleted rows.
-- $1 tenants, $2 names
WITH levels AS (
    DELETE FROM model_levels l USING unnest($1::int[], $2::text[]) g (tenant, name) WHERE l.tenant = g.tenant AND l.model = g.name
)
DELETE FROM models m USING unnest($1::int[], $2::text[]) g (tenant, name) WHERE m.tenant = g.tenant AND m.name = g.name
