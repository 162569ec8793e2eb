-- Purpose: who decides, the last commit, and the last step of the schema. Index: brain_pkey, batches_pkey backwards. Locks: none.
SELECT epoch, CASE WHEN renewed_at = '-infinity' THEN 0 ELSE (extract(epoch FROM renewed_at) * 1000000)::bigint END,
    address, epoch || '/' || xmin, backend_pid, (extract(epoch FROM backend_start) * 1000000)::bigint,
    coalesce((SELECT max(batch) FROM batches WHERE cell = 1), 0),
    schema, (SELECT max(version_id) FROM goose_db_version WHERE is_applied)
FROM brain WHERE cell = 1
