-- Purpose: all workers that are not gone. Index: workers_instance. Locks: none.
SELECT id, tenant, env, key_id, name, instance, version, pool, task_types, lanes, kinds, cpu_milli, memory_mb, disk_mb,
    gpus::text, slots, kind_slots::text, models, permissions, labels::text, lease_seconds, session, state, draining,
    last_seen, created_at, updated_at, replaced, utilization, any_model, any_permit
FROM workers WHERE state < 2 ORDER BY id
