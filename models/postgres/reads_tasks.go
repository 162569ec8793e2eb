package postgres

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"nightshift/models"
)

// CountMost is how far rows are counted; beyond it there are "at least" as many.
const CountMost = 10_000

// TaskFilter says which tasks of an environment a list shows; empty fields let all pass.
type TaskFilter struct {
	States        []models.State
	Types         []string
	Lanes         []string
	Kinds         []models.KindName
	Workflows     []models.ID
	Workers       []models.ID
	Schedules     []models.ID
	Labels        map[string][]string // each key must have one of its values
	CreatedAfter  models.Instant
	CreatedBefore models.Instant
	Fingerprints  []models.ID
	Parents       []models.ID
	IDs           []models.ID

	After   models.ID // the last row of the page before
	Desc    bool
	Limit   int
	Include Include
}

// clockSlack is how far an id's time, taken from a replica's clock, may lie from created_at.
const clockSlack = time.Hour

// where builds the condition on t. Numbers of states are written out, so that partial indexes can be used.
func (f *TaskFilter) where(env int32) *where {
	w := &where{}
	w.add(`t.env = $?`, env)
	w.states(f.States)
	if len(f.Types) > 0 {
		w.add(`t.class = ANY (SELECT number FROM classes WHERE type = ANY ($?))`, f.Types)
	}
	if len(f.Lanes) > 0 {
		w.add(`t.lane = ANY (SELECT number FROM lanes WHERE env = $? AND name = ANY ($?))`, env, f.Lanes)
	}
	if len(f.Kinds) > 0 {
		kinds := make([]int16, len(f.Kinds))
		for i, k := range f.Kinds {
			kinds[i] = int16(k)
		}
		w.add(`t.lane = ANY (SELECT number FROM lanes WHERE env = $? AND kind = ANY ($?))`, env, kinds)
	}
	if len(f.Workflows) > 0 {
		w.add(`t.workflow = ANY ($?)`, idArgs(f.Workflows))
	}
	if len(f.Workers) > 0 {
		w.add(`t.worker = ANY ($?)`, idArgs(f.Workers))
	}
	if len(f.Schedules) > 0 {
		w.add(`t.id IN (SELECT task FROM schedule_tasks WHERE env = $? AND schedule = ANY ($?))`, env, idArgs(f.Schedules))
	}
	if len(f.Fingerprints) > 0 {
		w.add(`t.fingerprint = ANY ($?)`, idArgs(f.Fingerprints))
	}
	if len(f.IDs) > 0 {
		w.add(`t.id = ANY ($?)`, idArgs(f.IDs))
	}
	if len(f.Parents) > 0 {
		w.add(`t.parent = ANY ($?)`, idArgs(f.Parents))
	}
	for _, key := range slices.Sorted(maps.Keys(f.Labels)) {
		w.add(`t.id IN (SELECT task FROM labels WHERE env = $? AND key = $? AND value = ANY ($?))`, env, key, f.Labels[key])
	}
	if f.CreatedAfter > 0 {
		w.add(`t.created_at > $? AND t.id > $?`, int64(f.CreatedAfter), idArg(models.NewID(max(0, f.CreatedAfter.Add(-clockSlack)), [10]byte{})))
	}
	if f.CreatedBefore > 0 {
		w.add(`t.created_at < $? AND t.id < $?`, int64(f.CreatedBefore), idArg(models.NewID(f.CreatedBefore.Add(clockSlack), [10]byte{})))
	}
	return w
}

// What shows of the rows of tasks: staged ones enter once their body has flipped, and nothing tells of them before.
const (
	entering = `t.state = 0 AND t.staging IN (SELECT id FROM stagings WHERE flipped)`
	shown    = `(t.state > 0 OR ` + entering + `)`
)

// states adds the condition on states. Rows of a body that entered but are still moved count as pending; before that
// nothing shows them.
func (w *where) states(states []models.State) {
	if len(states) == 0 {
		w.add(shown)
		return
	}
	numbers := make([]string, 0, len(states))
	for _, s := range states {
		numbers = append(numbers, strconv.Itoa(int(s)))
	}
	in := `t.state IN (` + strings.Join(numbers, ", ") + `)`
	if slices.Contains(states, models.Pending) {
		in = `(` + in + ` OR ` + entering + `)`
	}
	w.add(in)
}

// Tasks lists tasks, newest first or oldest first.
func (r *Reads) Tasks(ctx context.Context, scope Scope, env int32, f *TaskFilter) (rows []TaskRow, err error) {
	w := f.where(env)
	order := "ASC"
	if f.Desc {
		order = "DESC"
	}
	if !f.After.IsZero() {
		w.add(map[bool]string{true: `t.id < $?`, false: `t.id > $?`}[f.Desc], idArg(f.After))
	}
	sql := fmt.Sprintf(`WITH page AS MATERIALIZED (SELECT t.env, t.id FROM tasks t WHERE %s ORDER BY t.id %s LIMIT %d)
%s ORDER BY t.id %s`, w, order, f.Limit, f.Include.from(), order)
	err = r.scoped(ctx, scope, func(tx pgx.Tx) error {
		found, err := tx.Query(ctx, sql, w.args...)
		if err != nil {
			return err
		}
		if rows, err = pgx.CollectRows(found, readTaskRow); err != nil || len(rows) == 0 {
			return err
		}
		return attachEdges(ctx, tx, env, rows)
	})
	return rows, err
}

// CountTasks counts what a filter lets pass, up to CountMost; more says that there are at least so many.
func (r *Reads) CountTasks(ctx context.Context, scope Scope, env int32, f *TaskFilter) (n int64, more bool, err error) {
	w := f.where(env)
	err = r.scoped(ctx, scope, func(tx pgx.Tx) error {
		return tx.QueryRow(ctx, fmt.Sprintf(`SELECT count(*) FROM (SELECT 1 FROM tasks t WHERE %s LIMIT %d) AS counted`, w, CountMost+1), w.args...).Scan(&n)
	})
	return min(n, CountMost), n > CountMost, err
}

// Task reads one task; not_found when it is not there or another tenant's.
func (r *Reads) Task(ctx context.Context, scope Scope, env int32, id models.ID, in Include) (*TaskRow, error) {
	rows, err := r.TasksByID(ctx, scope, env, []models.ID{id}, in)
	if err != nil {
		return nil, err
	}
	if len(rows) == 0 {
		return nil, noTask(id)
	}
	return &rows[0], nil
}

func noTask(id models.ID) error {
	return models.Errorf(models.NotFound, "there is no %q here", id.Text(models.TaskPrefix))
}

// TasksByID reads tasks by their ids, in the order of the ids; those that are not there are left out.
func (r *Reads) TasksByID(ctx context.Context, scope Scope, env int32, ids []models.ID, in Include) (rows []TaskRow, err error) {
	w := &where{}
	w.add(`t.env = $?`, env)
	w.add(`t.id = ANY ($?)`, idArgs(ids))
	w.states(nil)
	sql := fmt.Sprintf(`WITH page AS MATERIALIZED (SELECT t.env, t.id FROM tasks t WHERE %s) %s`, w, in.from())
	err = r.scoped(ctx, scope, func(tx pgx.Tx) error {
		found, err := tx.Query(ctx, sql, w.args...)
		if err != nil {
			return err
		}
		if rows, err = pgx.CollectRows(found, readTaskRow); err != nil || len(rows) == 0 {
			return err
		}
		return attachEdges(ctx, tx, env, rows)
	})
	at := make(map[models.ID]int, len(ids))
	for i, id := range ids {
		at[id] = i
	}
	slices.SortFunc(rows, func(a, b TaskRow) int { return at[a.ID] - at[b.ID] })
	return rows, err
}

// There says which of some tasks are there.
func (r *Reads) There(ctx context.Context, scope Scope, env int32, ids []models.ID) (map[models.ID]bool, error) {
	w := &where{}
	w.add(`t.env = $? AND t.id = ANY ($?)`, env, idArgs(ids))
	w.states(nil)
	there := make(map[models.ID]bool, len(ids))
	err := r.scoped(ctx, scope, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, `SELECT t.id FROM tasks t WHERE `+w.String(), w.args...)
		if err != nil {
			return err
		}
		var id models.ID
		_, err = pgx.ForEachRow(rows, []any{idTo(&id)}, func() error { there[id] = true; return nil })
		return err
	})
	return there, err
}

// TaskState is the least of a task: enough to see whether it has moved.
type TaskState struct {
	State     models.State
	UpdatedAt models.Instant
}

// State reads where a task stands; not_found when it is not there.
func (r *Reads) State(ctx context.Context, scope Scope, env int32, id models.ID) (s TaskState, err error) {
	w := &where{}
	w.add(`t.env = $? AND t.id = $?`, env, idArg(id))
	w.states(nil)
	err = r.scoped(ctx, scope, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, `SELECT t.state, t.updated_at FROM tasks t WHERE `+w.String(), w.args...)
		if err != nil {
			return err
		}
		found := false
		_, err = pgx.ForEachRow(rows, []any{(*int16)(&s.State), atTo(&s.UpdatedAt)}, func() error { found = true; return nil })
		if err == nil && !found {
			return noTask(id)
		}
		return err
	})
	return s, err
}

// Attempts lists the attempts of tasks that ended, by task, oldest first.
func (r *Reads) Attempts(ctx context.Context, scope Scope, env int32, tasks []models.ID) (map[models.ID][]models.Attempt, error) {
	all := map[models.ID][]models.Attempt{}
	err := r.scoped(ctx, scope, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, `SELECT env, task, n, id, worker, coalesce(worker_version, ''), outcome, pool, started_at, finished_at,
			charged_ms, error, usage, coalesce(model, '') FROM attempts WHERE env = $1 AND task = ANY ($2) ORDER BY task, n`, env, idArgs(tasks))
		if err != nil {
			return err
		}
		var a models.Attempt
		var failure, usage *string
		_, err = pgx.ForEachRow(rows, []any{
			&a.Env, idTo(&a.Task), &a.N, idTo(&a.ID), idTo(&a.Worker), &a.WorkerVersion, (*int16)(&a.Outcome),
			&a.Pool, atTo(&a.StartedAt), atTo(&a.FinishedAt), &a.ChargedMS, &failure, &usage, &a.Model,
		}, func() error {
			a.Error, a.Usage = nil, rawTo(usage)
			if failure != nil {
				a.Error = &models.TaskError{}
				if err := json.Unmarshal([]byte(*failure), a.Error); err != nil {
					return err
				}
			}
			all[a.Task] = append(all[a.Task], a)
			return nil
		})
		return err
	})
	return all, err
}

// Choices are the models that were chosen for a task, the first first, each with the first line of its ranking alone.
func (r *Reads) Choices(ctx context.Context, scope Scope, env int32, task models.ID) (all []models.Choice, err error) {
	err = r.scoped(ctx, scope, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, `SELECT n, at, coalesce(chosen, ''), reason, coalesce(ranking::json->0->>'instead', '')
			FROM model_choices WHERE env = $1 AND task = $2 ORDER BY n`, env, idArg(task))
		if err != nil {
			return err
		}
		all, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (models.Choice, error) {
			c := models.Choice{Env: env, Task: task, Ranking: []models.RankedModel{{}}}
			err := row.Scan(&c.N, atTo(&c.At), &c.Chosen, &c.Reason, &c.Ranking[0].Instead)
			c.Ranking[0].Model = c.Chosen
			return c, err
		})
		return err
	})
	return all, err
}

func idArg(id models.ID) [16]byte { return id }

func idArgs(ids []models.ID) [][16]byte {
	out := make([][16]byte, len(ids))
	for i, id := range ids {
		out[i] = id
	}
	return out
}
