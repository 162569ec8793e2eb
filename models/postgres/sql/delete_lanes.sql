-- Purpose: lanes that are gone. Index: lanes_pkey. Locks: the deleted rows.
-- $1 numbers
DELETE FROM lanes WHERE number = ANY ($1::int[])
