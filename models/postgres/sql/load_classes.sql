-- Purpose: all classes. Index: none. Locks: none.
SELECT number, spec::text FROM classes ORDER BY number
