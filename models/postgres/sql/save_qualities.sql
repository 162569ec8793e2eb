-- Purpose: how good results were. Index: qualities_pkey. Locks: the saved rows.
-- $1 models.Quality as JSON
INSERT INTO qualities (env, task, source, score, at)
SELECT * FROM json_to_recordset($1::json) AS r ("Env" int, "Task" uuid, "Source" text, "Score" float8, "At" bigint)
ON CONFLICT (env, task, source) DO UPDATE SET score = EXCLUDED.score, at = EXCLUDED.at
