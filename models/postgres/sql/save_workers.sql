-- Purpose: workers, whole rows. Index: workers_pkey. Locks: the saved rows.
-- $1 models.Worker as JSON
INSERT INTO workers (id, tenant, env, key_id, name, instance, version, pool, task_types, lanes, kinds, cpu_milli, memory_mb,
    disk_mb, gpus, slots, kind_slots, models, permissions, labels, lease_seconds, session, state, draining, last_seen,
    created_at, updated_at, replaced, utilization, any_model, any_permit)
SELECT "ID", "Tenant", "Env", "KeyID", "Name", "Instance", "Version", "Pool", coalesce("TaskTypes", '{}'),
    coalesce("Lanes", '{}'), coalesce("Kinds", '{}'), "CPUMilli", "MemoryMB", "DiskMB", coalesce("GPUs", '[]'), "Slots",
    coalesce("KindSlots", '{}'), coalesce("Models", '{}'), coalesce("Permissions", '{}'), coalesce("Labels", '{}'),
    "LeaseSeconds", "Session", "State", "Draining", "LastSeen", "CreatedAt", "UpdatedAt", coalesce("Replaced", '{}'),
    "Utilization", coalesce("AnyModel", false), coalesce("AnyPermit", false)
FROM json_to_recordset($1::json) AS r ("ID" uuid, "Tenant" int, "Env" int, "KeyID" text, "Name" text, "Instance" text,
    "Version" text, "Pool" text, "TaskTypes" text[], "Lanes" text[], "Kinds" smallint[], "CPUMilli" bigint,
    "MemoryMB" bigint, "DiskMB" bigint, "GPUs" jsonb, "Slots" int, "KindSlots" jsonb, "Models" text[], "Permissions" text[],
    "Labels" jsonb, "LeaseSeconds" int, "Session" uuid, "State" smallint, "Draining" boolean, "LastSeen" bigint,
    "CreatedAt" bigint, "UpdatedAt" bigint, "Replaced" bigint[], "Utilization" text,
    "AnyModel" boolean, "AnyPermit" boolean)
ON CONFLICT (id) DO UPDATE SET tenant = EXCLUDED.tenant, env = EXCLUDED.env, key_id = EXCLUDED.key_id, name = EXCLUDED.name,
    instance = EXCLUDED.instance, version = EXCLUDED.version, pool = EXCLUDED.pool, task_types = EXCLUDED.task_types,
    lanes = EXCLUDED.lanes, kinds = EXCLUDED.kinds, cpu_milli = EXCLUDED.cpu_milli, memory_mb = EXCLUDED.memory_mb,
    disk_mb = EXCLUDED.disk_mb, gpus = EXCLUDED.gpus, slots = EXCLUDED.slots, kind_slots = EXCLUDED.kind_slots,
    models = EXCLUDED.models, permissions = EXCLUDED.permissions, labels = EXCLUDED.labels,
    lease_seconds = EXCLUDED.lease_seconds, session = EXCLUDED.session, state = EXCLUDED.state,
    draining = EXCLUDED.draining, last_seen = EXCLUDED.last_seen, created_at = EXCLUDED.created_at,
    updated_at = EXCLUDED.updated_at, replaced = EXCLUDED.replaced, utilization = EXCLUDED.utilization,
    any_model = EXCLUDED.any_model, any_permit = EXCLUDED.any_permit
