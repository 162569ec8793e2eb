-- Purpose: signals that were delivered, or whose attempt ended. Index: signals_pkey. Locks: the deleted rows.
-- $1 ids
DELETE FROM signals s USING unnest($1::uuid[]) t (id) WHERE s.id = t.id
