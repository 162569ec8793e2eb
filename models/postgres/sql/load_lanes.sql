-- Purpose: all lanes. Index: none. Locks: none.
SELECT number, env, name, kind, weight, max_concurrent, high_water, task_types, paused, draining, reason, first,
    description, owner, runbook_url, created_at, updated_at, version, open_windows::text, elastic, yields_to, max_hold, defaults::text
FROM lanes ORDER BY number
