package postgres

// messageRules delete triggers and items that were taken, and what says so. Messages that still wait are never too old, nor
// are the items of a task that is still kept. A mark is looked at once more when its row is locked: the brain may have moved
// it meanwhile.
var messageRules = []plainRule{
	{"takes", keepWork, `DELETE FROM takes WHERE (env, run, n) IN (SELECT t.env, t.run, t.n FROM takes t
			WHERE t.run < (lpad(to_hex($1::bigint / 1000), 12, '0') || repeat('0', 20))::uuid
			AND NOT EXISTS (SELECT FROM schedule_runs r WHERE r.env = t.env AND r.id = t.run)
			AND NOT EXISTS (SELECT FROM tasks w WHERE w.env = t.env AND w.id = t.task) LIMIT $2)`},
	{"messages", keepWork, `DELETE FROM messages WHERE (source, env, name, seq) IN (SELECT m.source, m.env, m.name, m.seq FROM messages m
			WHERE m.at < $1 AND CASE m.source WHEN 0 THEN
				NOT EXISTS (SELECT FROM feed_marks k WHERE k.env = m.env AND k.source = 0 AND k.name = m.name AND k.after < m.seq)
			ELSE
				m.seq <= (SELECT k.after FROM feed_marks k WHERE k.env = m.env AND k.source = 1 AND k.name = m.name
					AND k.schedule = '00000000-0000-0000-0000-000000000000')
				AND coalesce((SELECT t.first > m.seq FROM takes t WHERE t.env = m.env AND t.source = 1 AND t.name = m.name AND t.last >= m.seq
					ORDER BY t.last LIMIT 1), true)
			END LIMIT $2)`},
	{"feed_marks", keepWork, `DELETE FROM feed_marks d WHERE d.at < $1 AND (d.env, d.source, d.name, d.schedule) IN (
			SELECT k.env, k.source, k.name, k.schedule FROM feed_marks k WHERE k.source = 1 AND k.at < $1
			AND NOT EXISTS (SELECT FROM messages m WHERE m.source = 1 AND m.env = k.env AND m.name = k.name) LIMIT $2)`},
}
