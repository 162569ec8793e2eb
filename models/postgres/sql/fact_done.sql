-- Purpose: commands that were done before. Index: done_pkey. Locks: none.
-- $1 commands
SELECT d.command, d.batch FROM unnest($1::uuid[]) r (command) JOIN done d ON d.command = r.command
