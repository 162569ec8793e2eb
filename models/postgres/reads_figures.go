package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"nightshift/models"
)

// StatesWithin is of how many tasks, the newest, states are counted.
const StatesWithin = 20_000

// StateCounts counts the newest StatesWithin tasks of an environment by state; where their total is less, they are all.
// Rows of a body that enters count as pending.
func (r *Reads) StateCounts(ctx context.Context, scope Scope, env int32) (counts models.Counts, err error) {
	w := &where{}
	w.add(`t.env = $?`, env)
	w.states(nil)
	sql := fmt.Sprintf(`SELECT state, count(*) FROM (SELECT t.state FROM tasks t WHERE %s ORDER BY t.id DESC LIMIT %d) newest GROUP BY state`, w, StatesWithin)
	err = r.scoped(ctx, scope, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, sql, w.args...)
		if err != nil {
			return err
		}
		counts, err = collectCounts(rows)
		return err
	})
	return counts, err
}

// collectCounts reads rows of a state and a number.
func collectCounts(rows pgx.Rows) (counts models.Counts, err error) {
	var state models.State
	var n int32
	_, err = pgx.ForEachRow(rows, []any{(*int16)(&state), &n}, func() error {
		if state == models.Staged {
			state = models.Pending
		}
		counts[state] += n
		return nil
	})
	return counts, err
}

// Dependants reads up to most tasks that wait, or waited, for a task; DependsOn holds the edges from it alone.
func (r *Reads) Dependants(ctx context.Context, scope Scope, env int32, id models.ID, most int) (rows []TaskRow, err error) {
	w := &where{}
	w.add(`e.env = $? AND e.from_task = $? AND e.fires_on < 3`, env, idArg(id))
	w.states(nil)
	sql := fmt.Sprintf(`WITH page AS MATERIALIZED (SELECT DISTINCT t.env, t.id FROM (
		SELECT t.env, t.id FROM edges e JOIN tasks t ON t.env = e.env AND t.id = e.to_task WHERE %s LIMIT %d) t)
%s ORDER BY t.id`, w, most, Include{}.from())
	err = r.scoped(ctx, scope, func(tx pgx.Tx) error {
		found, err := tx.Query(ctx, sql, w.args...)
		if err != nil {
			return err
		}
		if rows, err = pgx.CollectRows(found, readTaskRow); err != nil || len(rows) == 0 {
			return err
		}
		return attachEdgesFrom(ctx, tx, env, id, rows)
	})
	return rows, err
}

func attachEdgesFrom(ctx context.Context, tx pgx.Tx, env int32, from models.ID, rows []TaskRow) error {
	ids := make([]models.ID, len(rows))
	at := make(map[models.ID]int, len(rows))
	for i := range rows {
		ids[i], at[rows[i].ID] = rows[i].ID, i
	}
	found, err := tx.Query(ctx, `SELECT to_task, fires_on, state FROM edges WHERE env = $1 AND to_task = ANY ($2) AND from_task = $3 AND fires_on < 3
		ORDER BY to_task, fires_on`, env, idArgs(ids), idArg(from))
	if err != nil {
		return err
	}
	e := models.Edge{Env: env, From: from}
	_, err = pgx.ForEachRow(found, []any{idTo(&e.To), (*int16)(&e.On), (*int16)(&e.State)}, func() error {
		row := &rows[at[e.To]]
		row.DependsOn = append(row.DependsOn, e)
		return nil
	})
	return err
}

// Children reads up to most tasks that a task spawned, oldest first.
func (r *Reads) Children(ctx context.Context, scope Scope, env int32, parent models.ID, most int) (rows []TaskRow, err error) {
	sql := fmt.Sprintf(`WITH page AS MATERIALIZED (SELECT t.env, t.id FROM tasks t WHERE t.env = $1 AND t.parent = $2 AND t.state > 0
		ORDER BY t.id LIMIT %d) %s ORDER BY t.id`, most, Include{}.from())
	err = r.scoped(ctx, scope, func(tx pgx.Tx) error {
		found, err := tx.Query(ctx, sql, env, idArg(parent))
		if err != nil {
			return err
		}
		rows, err = pgx.CollectRows(found, readTaskRow)
		return err
	})
	return rows, err
}

// TenantFigure is how many tasks of a tenant stand where. Parked ones are ready too; DoneToday succeeded within a day.
type TenantFigure struct{ Ready, Running, Dead, DoneToday int64 }

// figuresWithin bounds what counting every tenant's tasks may cost.
const figuresWithin = `SET LOCAL statement_timeout = '3s'`

// TenantFigures counts the tasks of every tenant, for the platform: three counts from indexes alone, one from the
// attempts of a day. It fails where that takes more than three seconds.
func (r *Reads) TenantFigures(ctx context.Context) (map[int32]TenantFigure, error) {
	figures := map[int32]TenantFigure{}
	err := r.db.Platform().Read(ctx, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, figuresWithin); err != nil {
			return err
		}
		rows, err := tx.Query(ctx, `
			SELECT e.tenant, sum(n.ready)::bigint, sum(n.running)::bigint, sum(n.dead)::bigint, sum(n.done)::bigint FROM (
				SELECT env, count(*) AS ready, 0 AS running, 0 AS dead, 0 AS done FROM tasks WHERE state = 3 AND gate IS NULL GROUP BY env
				UNION ALL SELECT env, count(*), 0, 0, 0 FROM tasks WHERE state = 3 AND gate IS NOT NULL GROUP BY env
				UNION ALL SELECT env, 0, count(*), 0, 0 FROM tasks WHERE state IN (4, 6) GROUP BY env
				UNION ALL SELECT env, 0, 0, count(*), 0 FROM tasks WHERE state = 7 GROUP BY env
				UNION ALL SELECT env, 0, 0, 0, count(*) FROM attempts WHERE outcome = 1
					AND finished_at > (extract(epoch FROM now() - interval '1 day') * 1000000)::bigint GROUP BY env
			) n JOIN environments e ON e.env = n.env GROUP BY e.tenant`)
		if err != nil {
			return err
		}
		var tenant int32
		var f TenantFigure
		_, err = pgx.ForEachRow(rows, []any{&tenant, &f.Ready, &f.Running, &f.Dead, &f.DoneToday}, func() error {
			figures[tenant] = f
			return nil
		})
		return err
	})
	return figures, peopleError(err)
}

// LaneFigure is what stands in a lane, counted from its rows: each up to CountMost, the oldest among those counted.
type LaneFigure struct {
	Depth, Running, Parked int64
	Oldest                 models.Instant // the first ready moment; 0: none is ready
}

// LaneFigure counts what stands in a lane.
func (r *Reads) LaneFigure(ctx context.Context, scope Scope, env, lane int32) (f LaneFigure, err error) {
	err = r.scoped(ctx, scope, func(tx pgx.Tx) error {
		return tx.QueryRow(ctx, fmt.Sprintf(`SELECT r.n, r.oldest, l.n, p.n FROM
			(SELECT count(*) AS n, coalesce(min(ready_at), 0) AS oldest FROM (SELECT ready_at FROM tasks WHERE lane = $2 AND env = $1 AND state = 3 AND gate IS NULL LIMIT %[1]d) x) r,
			(SELECT count(*) AS n FROM (SELECT FROM tasks WHERE env = $1 AND lane = $2 AND state IN (4, 6) LIMIT %[1]d) x) l,
			(SELECT count(*) AS n FROM (SELECT FROM tasks WHERE env = $1 AND lane = $2 AND state = 3 AND gate IS NOT NULL LIMIT %[1]d) x) p`, CountMost), env, lane).
			Scan(&f.Depth, atTo(&f.Oldest), &f.Running, &f.Parked)
	})
	return f, err
}
