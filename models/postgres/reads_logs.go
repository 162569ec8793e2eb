package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"nightshift/models"
)

// LogRow is one line that an attempt wrote.
type LogRow struct {
	ID      int64
	Attempt int32
	At      models.Instant
	Level   string
	Message string
}

// LogList says which lines of a task a list shows.
type LogList struct {
	After int64 // the last row of the page before; 0: none
	Desc  bool
	Limit int
}

// Logs lists the lines of a task in the order they came.
func (r *Reads) Logs(ctx context.Context, scope Scope, env int32, task models.ID, l LogList) (rows []LogRow, err error) {
	w := &where{}
	w.add(`env = $? AND task = $?`, env, idArg(task))
	order := "ASC"
	if l.Desc {
		order = "DESC"
	}
	if l.After > 0 {
		w.add(map[bool]string{true: `id < $?`, false: `id > $?`}[l.Desc], l.After)
	}
	err = r.scoped(ctx, scope, func(tx pgx.Tx) error {
		found, err := tx.Query(ctx, fmt.Sprintf(`SELECT id, attempt, at, level, message FROM logs WHERE %s ORDER BY id %s LIMIT %d`, w, order, l.Limit), w.args...)
		if err != nil {
			return err
		}
		rows, err = pgx.CollectRows(found, func(row pgx.CollectableRow) (l LogRow, err error) {
			err = row.Scan(&l.ID, &l.Attempt, atTo(&l.At), &l.Level, &l.Message)
			return l, err
		})
		return err
	})
	return rows, err
}

// CountLogs counts the lines of a task: there is a most that one keeps.
func (r *Reads) CountLogs(ctx context.Context, scope Scope, env int32, task models.ID) (n int64, err error) {
	err = r.scoped(ctx, scope, func(tx pgx.Tx) error {
		return tx.QueryRow(ctx, `SELECT count(*) FROM logs WHERE env = $1 AND task = $2`, env, idArg(task)).Scan(&n)
	})
	return n, err
}

// Holder is who says something of a running attempt: its lease, and the session of its worker where that was sent.
type Holder struct {
	models.TaskRef
	Token   models.ID
	Session models.ID // zero: not sent
}

// attempt is the attempt that holds the lease; holds is false when none does. A session that is not its worker's is refused.
func (h *Holder) attempt(ctx context.Context, tx pgx.Tx) (attempt int32, holds bool, err error) {
	rows, err := tx.Query(ctx, `SELECT t.attempt, $4::uuid = '00000000-0000-0000-0000-000000000000' OR EXISTS (SELECT FROM workers w WHERE w.id = t.worker AND w.session = $4)
		FROM tasks t WHERE t.env = $1 AND t.id = $2 AND t.token = $3 AND t.state IN (4, 6)`, h.Env, idArg(h.ID), idArg(h.Token), idArg(h.Session))
	if err != nil {
		return 0, false, err
	}
	var fits bool
	_, err = pgx.ForEachRow(rows, []any{&attempt, &fits}, func() error { holds = true; return nil })
	if err == nil && holds && !fits {
		err = models.Errorf(models.SessionReplaced, "the session that was sent is not that of the worker which holds the lease")
	}
	return attempt, holds, err
}

// KeepLogs writes lines of the attempt that holds the lease; false when none does. No decision reads them: the replica
// that got them writes them itself.
func (r *Reads) KeepLogs(ctx context.Context, h Holder, lines []LogRow) (holds bool, err error) {
	at, levels, messages := make([]int64, len(lines)), make([]string, len(lines)), make([]string, len(lines))
	for i, l := range lines {
		at[i], levels[i], messages[i] = int64(l.At), l.Level, l.Message
	}
	err = r.db.Platform().Write(ctx, func(tx pgx.Tx) error {
		var attempt int32
		var err error
		if attempt, holds, err = h.attempt(ctx, tx); err != nil || !holds || len(lines) == 0 {
			return err
		}
		_, err = tx.Exec(ctx, `INSERT INTO logs (env, task, attempt, at, level, message)
			SELECT $1, $2, $3, l.at, l.level, l.message FROM unnest($4::bigint[], $5::text[], $6::text[]) WITH ORDINALITY l (at, level, message, n) ORDER BY l.n`,
			h.Env, idArg(h.ID), attempt, at, levels, messages)
		return err
	})
	return holds, peopleError(err)
}

// Qualities lists what was said of a task's result, by source.
func (r *Reads) Qualities(ctx context.Context, scope Scope, env int32, task models.ID) (list []models.Quality, err error) {
	err = r.scoped(ctx, scope, func(tx pgx.Tx) error {
		found, err := tx.Query(ctx, `SELECT source, score, at FROM qualities WHERE env = $1 AND task = $2 ORDER BY source`, env, idArg(task))
		if err != nil {
			return err
		}
		list, err = pgx.CollectRows(found, func(row pgx.CollectableRow) (q models.Quality, err error) {
			q.Env, q.Task = env, task
			err = row.Scan(&q.Source, &q.Score, atTo(&q.At))
			return q, err
		})
		return err
	})
	return list, err
}
