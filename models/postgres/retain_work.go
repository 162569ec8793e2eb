package postgres

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"nightshift/models"
)

// retainStaged deletes bodies that were never made part of the world: first they are marked, so that they never will be.
func (db *DB) retainStaged(ctx context.Context, before models.Instant, gone map[string]int64) error {
	for range retainSlices {
		var n int64
		more := false
		err := db.sweep(ctx, func(tx pgx.Tx) error {
			var id [16]byte
			err := tx.QueryRow(ctx, `UPDATE stagings SET dropped = true WHERE id = (
				SELECT id FROM stagings WHERE NOT flipped AND at < $1 ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED) AND NOT flipped RETURNING id`,
				int64(before)).Scan(&id)
			if errors.Is(err, pgx.ErrNoRows) {
				return nil
			}
			if err != nil {
				return err
			}
			more = true
			err = tx.QueryRow(ctx, `WITH old AS MATERIALIZED (SELECT t.env, t.id FROM tasks t WHERE t.staging = $1 AND t.state = 0 ORDER BY t.id LIMIT $2)`+
				deleteOld, id, retainSlice).Scan(&n)
			if err != nil || n == retainSlice {
				return err
			}
			_, err = tx.Exec(ctx, `DELETE FROM stagings WHERE id = $1`, id)
			return err
		})
		gone["staged"] += n
		if err != nil || !more {
			return err
		}
	}
	return nil
}

// retainWork deletes workflows with their tasks, and tasks outside of workflows, that ended long ago: environment by
// environment in the order of their ids, each call going on where the last one stopped.
func (db *DB) retainWork(ctx context.Context, before models.Instant, gone map[string]int64) error {
	var envs []int32
	err := db.Platform().Read(ctx, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, `SELECT env FROM environments ORDER BY env`)
		if err != nil {
			return err
		}
		envs, err = pgx.CollectRows(rows, pgx.RowTo[int32])
		return err
	})
	if err != nil {
		return err
	}
	if db.retained.tasks == nil {
		db.retained.tasks, db.retained.workflows = map[int32]models.ID{}, map[int32]models.ID{}
	}
	flows, tasks := retainSlices, retainSlices
	for _, env := range envs {
		if err := db.walk(ctx, db.oldWorkflows, db.retained.workflows, env, before, &flows, gone); err != nil {
			return err
		}
		if err := db.walk(ctx, db.oldTasks, db.retained.tasks, env, before, &tasks, gone); err != nil {
			return err
		}
	}
	return nil
}

// slice deletes what is old of the next rows of an environment after a mark; it says where to go on, and whether it came
// to the end.
type slice func(ctx context.Context, env int32, after models.ID, before models.Instant, gone map[string]int64) (next models.ID, end bool, err error)

func (db *DB) walk(ctx context.Context, step slice, marks map[int32]models.ID, env int32, before models.Instant, left *int, gone map[string]int64) error {
	for ; *left > 0; *left-- {
		next, end, err := step(ctx, env, marks[env], before, gone)
		if err != nil {
			return err
		}
		marks[env] = next
		if end {
			delete(marks, env) // the next call begins anew
			return nil
		}
	}
	return nil
}

// oldTasks looks at the next tasks: what is final stands alone when it belongs to no workflow, and neither its parent nor
// anything that waited for it can still ask for its result.
func (db *DB) oldTasks(ctx context.Context, env int32, after models.ID, before models.Instant, gone map[string]int64) (next models.ID, end bool, err error) {
	var n, looked int64
	err = db.sweep(ctx, func(tx pgx.Tx) error {
		return tx.QueryRow(ctx, `WITH page AS MATERIALIZED (
				SELECT t.env, t.id, t.state, t.flags, t.parent, t.workflow, t.finished_at, t.updated_at FROM tasks t
				WHERE t.env = $1 AND t.id > $2 AND t.id < $3 ORDER BY t.env, t.id LIMIT $5
			), old AS MATERIALIZED (
				SELECT p.env, p.id FROM page p WHERE p.state > 7 AND coalesce(p.finished_at, p.updated_at) < $4 AND p.workflow IS NULL
				AND NOT EXISTS (SELECT FROM tasks u WHERE u.env = p.env AND u.id = p.parent AND u.state + 0 < 8)
				AND NOT (p.flags & 1 = 1 AND EXISTS (SELECT FROM edges e JOIN tasks d ON d.env = e.env AND d.id = e.to_task
					WHERE e.env = p.env AND e.from_task = p.id AND d.state + 0 < 8))
			)`+deleteOld+`, (SELECT count(*) FROM page), coalesce((SELECT id FROM page ORDER BY id DESC LIMIT 1), $2)`,
			env, idArg(after), idArg(models.NewID(max(0, before), [10]byte{})), int64(before), retainSlice).Scan(&n, &looked, idTo(&next))
	})
	gone["tasks"] += n
	return next, looked < retainSlice, err
}

// flowsASlice is how many workflows a slice looks at.
const flowsASlice = 100

// oldWorkflows deletes the tasks of the next workflows that ended long ago and hold no dead letter, and then their rows.
// It stays where it is until no final task of theirs is left.
func (db *DB) oldWorkflows(ctx context.Context, env int32, after models.ID, before models.Instant, gone map[string]int64) (next models.ID, end bool, err error) {
	var tasks, flows int64
	looked := 0
	err = db.sweep(ctx, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, `SELECT w.id FROM workflows w WHERE w.env = $1 AND w.id > $2 AND w.id < $3 AND w.state IN (1, 2, 3)
			AND coalesce(w.finished_at, w.updated_at) < $4 AND w.counts[8] = 0 AND w.gate = 0 ORDER BY w.env, w.id LIMIT $5`,
			env, idArg(after), idArg(models.NewID(max(0, before), [10]byte{})), int64(before), flowsASlice)
		if err != nil {
			return err
		}
		ids, err := pgx.CollectRows(rows, pgx.RowTo[[16]byte])
		if looked = len(ids); err != nil || looked == 0 {
			return err
		}
		next = ids[looked-1]
		err = tx.QueryRow(ctx, `WITH old AS MATERIALIZED (SELECT o.env, o.id FROM unnest($2::uuid[]) w (id) CROSS JOIN LATERAL (
				SELECT t.env, t.id FROM tasks t WHERE t.env = $1 AND t.workflow = w.id AND t.workflow IS NOT NULL AND t.state + 0 > 7
				ORDER BY t.env, t.workflow, t.id LIMIT $3) o LIMIT $3)`+deleteOld, env, ids, retainSlice).Scan(&tasks)
		if err != nil || tasks == retainSlice {
			return err
		}
		return tx.QueryRow(ctx, `WITH gone AS (DELETE FROM workflows w WHERE w.env = $1 AND w.id = ANY ($2)
				AND NOT EXISTS (SELECT FROM tasks t WHERE t.env = w.env AND t.workflow = w.id AND t.workflow IS NOT NULL) RETURNING env, id
			), spends AS (DELETE FROM flow_spends f USING gone WHERE f.env = gone.env AND f.workflow = gone.id)
			, made AS (DELETE FROM schedule_tasks s USING gone WHERE s.env = gone.env AND s.task = gone.id)
			SELECT count(*) FROM gone`, env, ids).Scan(&flows)
	})
	gone["tasks"] += tasks
	gone["workflows"] += flows
	if tasks == retainSlice {
		return after, false, err
	}
	return next, looked < flowsASlice, err
}
