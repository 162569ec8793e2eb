-- Purpose: the only clock there is. Index: none. Locks: none.
SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint
