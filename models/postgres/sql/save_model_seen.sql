-- Purpose: what was seen of models. Index: model_seen_pkey. Locks: the saved rows.
-- $1 models.ModelSeen as JSON
INSERT INTO model_seen (tenant, type, model, judged, good, runs, tokens_in, tokens_out, tokens_cached, seconds)
SELECT * FROM json_to_recordset($1::json) AS r (tenant int, type text, model text, judged float8, good float8, runs float8,
    tokens_in float8, tokens_out float8, tokens_cached float8, seconds float8)
ON CONFLICT (tenant, type, model) DO UPDATE SET judged = EXCLUDED.judged, good = EXCLUDED.good, runs = EXCLUDED.runs,
    tokens_in = EXCLUDED.tokens_in, tokens_out = EXCLUDED.tokens_out, tokens_cached = EXCLUDED.tokens_cached, seconds = EXCLUDED.seconds
