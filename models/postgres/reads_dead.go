package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"nightshift/models"
)

// DeadGroup is the dead letters of one environment that died of the same thing.
type DeadGroup struct {
	Fingerprint models.ID
	Count       int64
	Types       []string
	FirstSeen   models.Instant
	LastSeen    models.Instant
	Sample      models.ID // the newest
}

// DeadMark is where a page of groups ended.
type DeadMark struct {
	At          models.Instant `json:"at"`
	Fingerprint models.ID      `json:"fingerprint"`
}

// DeadFilter says which groups a list shows.
type DeadFilter struct {
	Types []string
	After DeadMark
	Desc  bool
	Limit int
}

// DeadGroups lists the groups by when something last joined them.
func (r *Reads) DeadGroups(ctx context.Context, scope Scope, env int32, f *DeadFilter) (groups []DeadGroup, err error) {
	w := &where{}
	w.add(`t.env = $? AND t.state = 7`, env)
	if len(f.Types) > 0 {
		w.add(`c.type = ANY ($?)`, f.Types)
	}
	order, having := "ASC", ""
	if f.Desc {
		order = "DESC"
	}
	if f.After != (DeadMark{}) {
		w.args = append(w.args, int64(f.After.At), idArg(f.After.Fingerprint))
		having = fmt.Sprintf(`HAVING (max(t.updated_at), t.fingerprint) %s ($%d, $%d)`,
			map[bool]string{true: "<", false: ">"}[f.Desc], len(w.args)-1, len(w.args))
	}
	sql := fmt.Sprintf(`SELECT t.fingerprint, count(*), array_agg(DISTINCT c.type), min(t.updated_at), max(t.updated_at),
		(array_agg(t.id ORDER BY t.id DESC))[1]
		FROM tasks t JOIN classes c ON c.number = t.class WHERE %s GROUP BY t.fingerprint %s
		ORDER BY max(t.updated_at) %s, t.fingerprint %s LIMIT %d`, w, having, order, order, f.Limit)
	err = r.scoped(ctx, scope, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, sql, w.args...)
		if err != nil {
			return err
		}
		groups, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (g DeadGroup, err error) {
			err = row.Scan(idTo(&g.Fingerprint), &g.Count, &g.Types, atTo(&g.FirstSeen), atTo(&g.LastSeen), idTo(&g.Sample))
			return g, err
		})
		return err
	})
	return groups, err
}

// CountDeadGroups counts the groups.
func (r *Reads) CountDeadGroups(ctx context.Context, scope Scope, env int32, f *DeadFilter) (n int64, err error) {
	w := &where{}
	w.add(`t.env = $? AND t.state = 7`, env)
	if len(f.Types) > 0 {
		w.add(`t.class = ANY (SELECT number FROM classes WHERE type = ANY ($?))`, f.Types)
	}
	err = r.scoped(ctx, scope, func(tx pgx.Tx) error {
		return tx.QueryRow(ctx, `SELECT count(DISTINCT t.fingerprint) FROM tasks t WHERE `+w.String(), w.args...).Scan(&n)
	})
	return n, err
}

// CountDead counts the dead letters of a fingerprint.
func (r *Reads) CountDead(ctx context.Context, scope Scope, env int32, fingerprint models.ID) (n int64, err error) {
	err = r.scoped(ctx, scope, func(tx pgx.Tx) error {
		return tx.QueryRow(ctx, `SELECT count(*) FROM tasks WHERE env = $1 AND fingerprint = $2 AND state = 7`, env, idArg(fingerprint)).Scan(&n)
	})
	return n, err
}

// DeadAmong picks the dead letters among tasks.
func (r *Reads) DeadAmong(ctx context.Context, scope Scope, env int32, tasks []models.ID) (dead []models.ID, err error) {
	err = r.scoped(ctx, scope, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, `SELECT id FROM tasks WHERE env = $1 AND id = ANY ($2) AND state = 7 ORDER BY id`, env, idArgs(tasks))
		if err != nil {
			return err
		}
		var id models.ID
		_, err = pgx.ForEachRow(rows, []any{idTo(&id)}, func() error { dead = append(dead, id); return nil })
		return err
	})
	return dead, err
}

// Digest tells what a payload was without showing it.
type Digest struct {
	SHA256 string
	Bytes  int64
}

// Digests reads the digests of payloads; tasks without one are left out.
func (r *Reads) Digests(ctx context.Context, scope Scope, env int32, ids []models.ID) (map[models.ID]Digest, error) {
	all := map[models.ID]Digest{}
	err := r.scoped(ctx, scope, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, `SELECT id, encode(sha256(convert_to(payload, 'UTF8')), 'hex'), octet_length(payload) FROM (
			SELECT s.id, coalesce(o.payload, s.payload) AS payload FROM specs s LEFT JOIN overrides o ON o.env = s.env AND o.task = s.id
			WHERE s.env = $1 AND s.id = ANY ($2)) AS stands WHERE payload IS NOT NULL`, env, idArgs(ids))
		if err != nil {
			return err
		}
		var id models.ID
		var d Digest
		_, err = pgx.ForEachRow(rows, []any{idTo(&id), &d.SHA256, &d.Bytes}, func() error { all[id] = d; return nil })
		return err
	})
	return all, err
}

// BulkAction reads what became of a bulk action.
func (r *Reads) BulkAction(ctx context.Context, scope Scope, env int32, id models.ID) (c models.Cursor, err error) {
	err = r.scoped(ctx, scope, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, `SELECT id, env, kind, target, matched, done, failed, finished, reason, at, action, paused, dropped FROM cursors
			WHERE env = $1 AND id = $2 AND kind IN (2, 3, $3, $4)`, env, idArg(id), int16(models.BulkAction), int16(models.Backfilled))
		if err != nil {
			return err
		}
		found, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (c models.Cursor, err error) {
			err = row.Scan(idTo(&c.ID), &c.Env, (*int16)(&c.Kind), idTo(&c.Target), &c.Matched, &c.Done, &c.Failed, &c.Finished, &c.Reason, atTo(&c.At),
				(*int16)(&c.Action), &c.Paused, &c.Dropped)
			return c, err
		})
		if err == nil && len(found) == 0 {
			return models.Errorf(models.NotFound, "there is no %q here", id.Text(models.BulkPrefix))
		}
		if err == nil {
			c = found[0]
		}
		return err
	})
	return c, err
}

// KeepBulkAction writes the record of a bulk action on named tasks that was done command by command: a cursor that never
// moves, since it is finished when it is written.
func (r *Reads) KeepBulkAction(ctx context.Context, c *models.Cursor, actor []byte) error {
	return peopleError(r.db.Platform().Write(ctx, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `INSERT INTO cursors (id, env, kind, finished, target, matched, done, failed, at, reason, actor)
			VALUES ($1, $2, $3, true, $4, $5, $6, $7, $8, $9, $10)`,
			idArg(c.ID), c.Env, int16(c.Kind), idArg(c.Target), c.Matched, c.Done, c.Failed, int64(c.At), c.Reason, string(actor))
		return err
	}))
}

// CountListed counts the tasks that a bulk action would be started for.
func (r *Reads) CountListed(ctx context.Context, scope Scope, env int32, f *TaskFilter) (n int64, err error) {
	w := f.where(env)
	err = r.scoped(ctx, scope, func(tx pgx.Tx) error {
		return tx.QueryRow(ctx, fmt.Sprintf(`SELECT count(*) FROM (SELECT 1 FROM tasks t WHERE %s LIMIT %d) AS counted`, w, f.Limit), w.args...).Scan(&n)
	})
	return n, err
}

// ListForBulk writes down which tasks a filter lets pass now, oldest first, and says how many. The cursor over them starts
// with a command; a list that never gets one is swept.
func (r *Reads) ListForBulk(ctx context.Context, under models.ID, env int32, f *TaskFilter) (n int64, err error) {
	w := f.where(env)
	w.args = append(w.args, idArg(under))
	err = r.db.Platform().Write(ctx, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, fmt.Sprintf(`INSERT INTO bulk_items (cursor, env, task) SELECT $%d, t.env, t.id FROM tasks t WHERE %s ORDER BY t.id LIMIT %d`,
			len(w.args), w, f.Limit), w.args...)
		n = tag.RowsAffected()
		return err
	})
	return n, peopleError(err)
}
