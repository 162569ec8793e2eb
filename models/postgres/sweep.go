package postgres

import (
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"nightshift/models"
)

// SweepEvery is how often the sweeps run, in seconds.
const SweepEvery = 60

// Bounds of one run; the next goes on where it stopped.
const (
	sweepPages = 10 // pages of retainSlice rows, of each table
	sweepFlows = 20 // workflows
	stuckAfter = 300
)

// Swept is what a run of the sweeps found.
type Swept struct {
	Found map[string]int64 // by the name of the sweep
	Drift []Drift          // counters that are not what the rows say
	Stuck []models.TaskRef // workflows that go on although nothing of them can move
}

// Drift is a counter that is not what the rows say.
type Drift struct {
	Env      int32
	Task     models.ID // or
	Workflow models.ID
	What     string
	Waits    int32 // of a task that waits for others: for how many by its counter
	More     int32 // by how many its edges say more
}

// SweepRecord is what is known of a sweep.
type SweepRecord struct {
	Name         string
	EverySeconds int32
	LastRun      models.Instant
	Found, Total int64
}

// mark is a place in the order of environment and id.
type mark struct {
	env int32
	id  models.ID
}

// Sweep looks after the rows, a bounded number a call: what stands beside tasks that are gone is deleted; counters are
// compared with what they count; workflows in which nothing can move are named. What was found is kept for Sweeps. Any
// replica may call it.
func (db *DB) Sweep(ctx context.Context, now models.Instant) (*Swept, error) {
	db.retained.mu.Lock()
	defer db.retained.mu.Unlock()
	if db.retained.marks == nil {
		db.retained.marks = map[string]mark{}
	}
	out := &Swept{Found: map[string]int64{}}
	for _, step := range []func() error{
		func() error { return db.sweepOrphans(ctx, out) },
		func() error { return db.sweepWaits(ctx, out) },
		func() error { return db.sweepCounts(ctx, now, out) },
		func() error { return db.sweepStuck(ctx, now, out) },
	} {
		if err := step(); err != nil {
			return out, classify(err)
		}
	}
	return out, classify(db.RecordSweeps(ctx, now, SweepEvery, out.Found))
}

// RecordSweeps keeps when sweeps ran and what they found.
func (db *DB) RecordSweeps(ctx context.Context, now models.Instant, every int32, found map[string]int64) error {
	var names []string
	for name := range found { // any order: sorted below
		names = append(names, name)
	}
	slices.Sort(names)
	counts := make([]int64, len(names))
	for i, name := range names {
		counts[i] = found[name]
	}
	return db.Platform().Write(ctx, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `INSERT INTO sweeps (name, every_seconds, last_run, found, total)
			SELECT f.name, $1, $2, f.n, f.n FROM unnest($3::text[], $4::bigint[]) f (name, n)
			ON CONFLICT (name) DO UPDATE SET every_seconds = EXCLUDED.every_seconds, last_run = EXCLUDED.last_run, found = EXCLUDED.found,
			total = sweeps.total + EXCLUDED.found`, every, int64(now), names, counts)
		return err
	})
}

// Sweeps lists what the sweeps found, by name.
func (r *Reads) Sweeps(ctx context.Context) (list []SweepRecord, err error) {
	err = r.db.Platform().Read(ctx, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, `SELECT name, every_seconds, last_run, found, total FROM sweeps ORDER BY name`)
		if err != nil {
			return err
		}
		list, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (s SweepRecord, err error) {
			err = row.Scan(&s.Name, &s.EverySeconds, atTo(&s.LastRun), &s.Found, &s.Total)
			return s, err
		})
		return err
	})
	return list, peopleError(err)
}

// page runs a sweep over the next pages of a table; look answers how many rows it saw and where it came to.
func (db *DB) page(ctx context.Context, name string, pages, size int, look func(tx pgx.Tx, from mark) (seen int, to mark, err error)) error {
	for range pages {
		seen := 0
		err := db.sweep(ctx, func(tx pgx.Tx) (err error) {
			var to mark
			seen, to, err = look(tx, db.retained.marks[name])
			if err == nil {
				db.retained.marks[name] = to
			}
			return err
		})
		if err != nil {
			return err
		}
		if seen < size {
			delete(db.retained.marks, name) // the next run begins anew
			return nil
		}
	}
	return nil
}

// sweepOrphans deletes what stands beside tasks that are gone. Rows and their task are written in one transaction, so one
// without the other is damage. What a schedule made may be a workflow, which stands among the workflows.
func (db *DB) sweepOrphans(ctx context.Context, out *Swept) error {
	out.Found["orphans"] = 0
	for _, beside := range besideTasks {
		table, column := beside[0], beside[1]
		kept := ""
		if table == "schedule_tasks" {
			kept = ` AND NOT EXISTS (SELECT FROM workflows w WHERE w.env = p.env AND w.id = p.id)`
		}
		sql := fmt.Sprintf(`WITH page AS MATERIALIZED (SELECT x.env, x.%[2]s AS id FROM %[1]s x WHERE (x.env, x.%[2]s) > ($1, $2) ORDER BY x.env, x.%[2]s LIMIT $3),
			lost AS MATERIALIZED (SELECT DISTINCT p.env, p.id FROM page p WHERE NOT EXISTS (SELECT FROM tasks t WHERE t.env = p.env AND t.id = p.id)%[3]s),
			gone AS (DELETE FROM %[1]s x USING lost l WHERE x.env = l.env AND x.%[2]s = l.id RETURNING 1)
			SELECT (SELECT count(*) FROM gone), (SELECT count(*) FROM page), coalesce((SELECT env FROM page ORDER BY env DESC, id DESC LIMIT 1), 0),
			coalesce((SELECT id FROM page ORDER BY env DESC, id DESC LIMIT 1), `+noID+`)`, table, column, kept)
		err := db.page(ctx, "orphans of "+table, sweepPages, retainSlice, func(tx pgx.Tx, from mark) (seen int, to mark, err error) {
			var gone int64
			err = tx.QueryRow(ctx, sql, from.env, idArg(from.id), retainSlice).Scan(&gone, &seen, &to.env, idTo(&to.id))
			out.Found["orphans"] += gone
			return seen, to, err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// sweepWaits recounts what pending tasks wait for: as many as edges to them are open.
func (db *DB) sweepWaits(ctx context.Context, out *Swept) error {
	out.Found["waits"] = 0
	return db.page(ctx, "waits", sweepPages, retainSlice, func(tx pgx.Tx, from mark) (seen int, to mark, err error) {
		rows, err := tx.Query(ctx, `WITH page AS MATERIALIZED (SELECT env, id, state, remaining FROM tasks WHERE (env, id) > ($1, $2) ORDER BY env, id LIMIT $3)
			SELECT p.env, p.id, p.remaining, CASE WHEN p.state = 2 THEN
				(SELECT count(*) FROM edges e WHERE e.env = p.env AND e.to_task = p.id AND e.state = 0) ELSE p.remaining END FROM page p ORDER BY p.env, p.id`,
			from.env, idArg(from.id), retainSlice)
		if err != nil {
			return 0, to, err
		}
		var remaining, open int64
		_, err = pgx.ForEachRow(rows, []any{&to.env, idTo(&to.id), &remaining, &open}, func() error {
			if seen++; remaining != open {
				out.Found["waits"]++
				out.Drift = append(out.Drift, Drift{Env: to.env, Task: to.id, Waits: int32(remaining), More: int32(open - remaining), What: fmt.Sprintf("the task waits for %d others by its counter and for %d by its edges", remaining, open)})
			}
			return nil
		})
		return seen, to, err
	})
}

// sweepCounts recounts the tasks of workflows that ended: their counts are saved then.
func (db *DB) sweepCounts(ctx context.Context, now models.Instant, out *Swept) error {
	out.Found["counts"] = 0
	return db.page(ctx, "counts", 1, sweepFlows, func(tx pgx.Tx, from mark) (seen int, to mark, err error) {
		rows, err := tx.Query(ctx, `WITH page AS MATERIALIZED (SELECT w.env, w.id, w.counts, w.state, w.updated_at FROM workflows w WHERE (w.env, w.id) > ($1, $2) ORDER BY w.env, w.id LIMIT $3)
			SELECT p.env, p.id, coalesce((SELECT sum(c) FROM unnest(p.counts) c), 0),
				CASE WHEN p.state IN (1, 2, 3) AND p.updated_at BETWEEN $6 AND $4 AND (SELECT sum(c) FROM unnest(p.counts) c) <= $5
				THEN (SELECT count(*) FROM tasks t WHERE t.env = p.env AND t.workflow = p.id AND t.workflow IS NOT NULL AND t.state + 0 > 0) ELSE -1 END FROM page p ORDER BY p.env, p.id`,
			from.env, idArg(from.id), sweepFlows, int64(now.Add(-models.Seconds(stuckAfter))), CountsLive,
			int64(now.Add(-models.Seconds(keepWork-24*3600)))) // those that retention may have begun to delete are left out
		if err != nil {
			return 0, to, err
		}
		var saved, counted int64
		_, err = pgx.ForEachRow(rows, []any{&to.env, idTo(&to.id), &saved, &counted}, func() error {
			if seen++; counted >= 0 && counted < saved { // more may be children of a task that retention left
				out.Found["counts"]++
				out.Drift = append(out.Drift, Drift{Env: to.env, Workflow: to.id, What: fmt.Sprintf("the workflow has %d tasks by its counts and %d by their rows", saved, counted)})
			}
			return nil
		})
		return seen, to, err
	})
}

// sweepStuck names the workflows that go on although nothing of them can move.
func (db *DB) sweepStuck(ctx context.Context, now models.Instant, out *Swept) error {
	out.Found["stuck_workflows"] = 0
	return db.page(ctx, "stuck", 1, sweepFlows, func(tx pgx.Tx, from mark) (seen int, to mark, err error) {
		rows, err := tx.Query(ctx, `WITH page AS MATERIALIZED (SELECT w.env, w.id, w.gate, w.updated_at FROM workflows w WHERE w.state IN (0, 4) AND (w.env, w.id) > ($1, $2)
				ORDER BY w.env, w.id LIMIT $3)
			SELECT p.env, p.id, p.gate = 0 AND p.updated_at < $4 AND NOT EXISTS (SELECT FROM tasks t WHERE t.env = p.env AND t.workflow = p.id
				AND t.workflow IS NOT NULL AND t.state + 0 < 7) FROM page p ORDER BY p.env, p.id`,
			from.env, idArg(from.id), sweepFlows, int64(now.Add(-models.Seconds(stuckAfter))))
		if err != nil {
			return 0, to, err
		}
		stuck := false
		_, err = pgx.ForEachRow(rows, []any{&to.env, idTo(&to.id), &stuck}, func() error {
			if seen++; stuck {
				out.Found["stuck_workflows"]++
				out.Stuck = append(out.Stuck, models.TaskRef{Env: to.env, ID: to.id})
			}
			return nil
		})
		return seen, to, err
	})
}
