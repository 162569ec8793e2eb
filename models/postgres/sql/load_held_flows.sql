-- Purpose: workflows that a board must know of: they are shut, or end at a moment. Index: workflows_held. Locks: none.
SELECT env, id, gate, CASE WHEN state IN (0, 4) THEN ends_at END FROM workflows
WHERE gate > 0 OR (ends_at IS NOT NULL AND state IN (0, 4)) ORDER BY env, id
