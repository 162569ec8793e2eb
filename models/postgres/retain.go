package postgres

import (
	"context"
	"slices"
	"strings"
	"sync"

	"github.com/jackc/pgx/v5"

	"nightshift/models"
)

// How long is kept what nobody asks for any more, in seconds.
const (
	keepDone    = 10 * 60       // resends come within minutes
	keepEvents  = 7 * 24 * 3600 // a reader may resume for a day; batches are kept as long as their events
	keepStaged  = 3600          // a body that was not made part of the world by then never will be
	keepFlipped = 24 * 3600     // of a body only its number is left, for those who send it again
	keepLogs    = 14 * 24 * 3600
	keepWork    = 30 * 24 * 3600 // tasks and workflows after their end
)

// Old rows go in slices, each a transaction of its own, so that none holds a lock for long.
const (
	retainSlice  = 1000 // rows a slice
	retainSlices = 60   // slices a call and kind of rows: a busy minute makes less
)

// retained remembers where a call of Retain stopped, so that the next one goes on there.
type retained struct {
	mu               sync.Mutex
	tasks, workflows map[int32]models.ID // the last row looked at, by environment
	marks            map[string]mark     // of the sweeps, by what they look at
}

// Retain deletes the oldest rows past their time, a bounded number a call, and says how many of each kind went. Any
// replica may call it, about once a minute.
func (db *DB) Retain(ctx context.Context, now models.Instant) (map[string]int64, error) {
	db.retained.mu.Lock()
	defer db.retained.mu.Unlock()
	gone := map[string]int64{}
	ended := func(seconds int) models.Instant { return now.Add(-models.Seconds(seconds)) }
	for _, rule := range slices.Concat(plainRules, messageRules) {
		if err := db.retainPlain(ctx, rule, ended(rule.keep), gone); err != nil {
			return gone, classify(err)
		}
	}
	for _, step := range []func() error{
		func() error { return db.retainStaged(ctx, ended(keepStaged), gone) },
		func() error { return db.retainSpends(ctx, gone) },
		func() error { return db.retainWork(ctx, ended(keepWork), gone) },
	} {
		if err := step(); err != nil {
			return gone, classify(err)
		}
	}
	return gone, nil
}

// plainRule deletes rows that nothing hangs on: those before $1, at most $2.
type plainRule struct {
	name string
	keep int
	sql  string
}

var plainRules = []plainRule{
	{"done", keepDone, `DELETE FROM done WHERE command IN (SELECT command FROM done WHERE at < $1 LIMIT $2)`},
	{"events", keepEvents, `WITH old AS (
			SELECT batch FROM (SELECT batch, at FROM batches WHERE cell = 1 ORDER BY batch LIMIT $2) oldest
			WHERE at < $1 AND batch < (SELECT max(batch) FROM batches WHERE cell = 1) -- the brain counts on from the newest
		), forgotten AS (DELETE FROM events e USING old WHERE e.batch = old.batch)
		DELETE FROM batches b USING old WHERE b.cell = 1 AND b.batch = old.batch`},
	{"sessions", keepDone, `DELETE FROM sessions WHERE token_sha256 IN (
			SELECT token_sha256 FROM sessions WHERE expires_at < timestamptz 'epoch' + $1::bigint * interval '1 microsecond' LIMIT $2)`},
	{"logs", keepLogs, `DELETE FROM logs WHERE id IN (SELECT id FROM (SELECT id, at FROM logs ORDER BY id LIMIT $2) oldest WHERE at < $1)`},
	{"spans", keepLogs, `DELETE FROM spans WHERE id IN (SELECT id FROM (SELECT id, at FROM spans ORDER BY id LIMIT $2) oldest WHERE at < $1)`},
	{"signals", keepWork, `DELETE FROM signals WHERE id IN (SELECT id FROM signals
			WHERE id < (lpad(to_hex($1::bigint / 1000), 12, '0') || repeat('0', 20))::uuid LIMIT $2)`},
	{"schedule_runs", keepWork, `DELETE FROM schedule_runs WHERE (env, id) IN (SELECT env, id FROM schedule_runs
			WHERE id < (lpad(to_hex($1::bigint / 1000), 12, '0') || repeat('0', 20))::uuid
			AND (finished_at IS NOT NULL OR task IS NULL AND workflow IS NULL AND outcome <> '') LIMIT $2)`},
	{"rate_passes", 0, `DELETE FROM rate_passes WHERE (env, key, batch) IN (SELECT p.env, p.key, p.batch FROM rate_limits l
			CROSS JOIN LATERAL (SELECT batch FROM rate_passes n WHERE n.env = l.env AND n.key = l.key ORDER BY n.env DESC, n.key DESC, n.batch DESC LIMIT 1) newest
			JOIN rate_passes p ON p.env = l.env AND p.key = l.key AND p.batch < newest.batch AND p.at < $1 - 2 * l.per_seconds * 1000000 LIMIT $2)`},
	{"cursors", keepWork, `DELETE FROM cursors WHERE id IN (SELECT id FROM cursors WHERE finished AND at < $1 LIMIT $2)`},
	{"bulk_items", keepDone, `DELETE FROM bulk_items WHERE (cursor, task) IN (SELECT b.cursor, b.task FROM bulk_items b
			LEFT JOIN cursors c ON c.id = b.cursor
			WHERE b.cursor < (lpad(to_hex($1::bigint / 1000), 12, '0') || repeat('0', 20))::uuid AND c.finished IS DISTINCT FROM false LIMIT $2)`},
	{"stagings", keepFlipped, `DELETE FROM stagings WHERE id IN (SELECT s.id FROM stagings s WHERE s.flipped AND s.at < $1
			AND NOT EXISTS (SELECT FROM tasks t WHERE t.staging = s.id AND t.state = 0) LIMIT $2)`},
}

func (db *DB) retainPlain(ctx context.Context, rule plainRule, before models.Instant, gone map[string]int64) error {
	for range retainSlices {
		var n int64
		err := db.sweep(ctx, func(tx pgx.Tx) error {
			tag, err := tx.Exec(ctx, rule.sql, int64(before), retainSlice)
			n = tag.RowsAffected()
			return err
		})
		gone[rule.name] += n
		if err != nil || n < retainSlice {
			return err
		}
	}
	return nil
}

// sweep runs one slice. The planner is held to indexes: a slice is small whatever it believes of a table.
func (db *DB) sweep(ctx context.Context, fn func(tx pgx.Tx) error) error {
	return db.Platform().Write(ctx, func(tx pgx.Tx) error {
		const held = `SELECT set_config('enable_seqscan', 'off', true), set_config('enable_hashjoin', 'off', true),
			set_config('enable_mergejoin', 'off', true), set_config('statement_timeout', '10s', true)`
		if _, err := tx.Exec(ctx, held); err != nil {
			return err
		}
		return fn(tx)
	})
}

// besideTasks are the tables whose rows go with a task's, and the column that names it. An edge goes with the task that
// waits: the one before it may be gone earlier.
var besideTasks = [][2]string{
	{"specs", "id"},
	{"labels", "task"},
	{"edges", "to_task"},
	{"attempts", "task"},
	{"progress", "task"},
	{"overrides", "task"},
	{"qualities", "task"},
	{"model_choices", "task"},
	{"dedupes", "task"},
	{"task_items", "task"},
	{"spans", "task"},
	{"schedule_tasks", "task"},
	{"presumed_spends", "task"},
}

// deleteOld deletes the tasks (env, id) of a query named old, with all that stands beside them, and counts them.
var deleteOld = func() string {
	var b strings.Builder
	b.WriteString(`, gone AS (DELETE FROM tasks t USING old WHERE t.env = old.env AND t.id = old.id RETURNING 1)`)
	for _, beside := range besideTasks {
		b.WriteString(`, ` + beside[0] + `_gone AS (DELETE FROM ` + beside[0] + ` x USING old WHERE x.env = old.env AND x.` + beside[1] + ` = old.id)`)
	}
	return b.String() + ` SELECT (SELECT count(*) FROM gone)`
}()
