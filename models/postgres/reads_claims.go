package postgres

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/jackc/pgx/v5"

	"nightshift/models"
)

// Bounds of what a claim carries of a task's dependencies; beyond them it names a URL.
const (
	ClaimDependencies = 100
	ClaimResultBytes  = 1_000_000
	claimAllResults   = 16_000_000 // of all tasks of one claim together
)

// Brief is what a worker needs of a task beside its row.
type Brief struct {
	Payload    json.RawMessage
	Input      json.RawMessage
	Trace      string
	Checkpoint json.RawMessage
	// Dependencies are what it waited for, as it ended. Many says that they are too many or too large to come along.
	Dependencies []Dependency
	Many         bool
	Children     []Dependency // what it spawned, as far as that is
	Watermark    models.Watermark
	Events       json.RawMessage // the triggers that its run took; nil: none
	Items        json.RawMessage // those that this attempt carries; nil: the task has none
}

// Dependency is a task that another one waited for.
type Dependency struct {
	Key    string
	Task   models.ID
	State  models.State
	Result json.RawMessage
}

// Briefs reads what the tasks of a claim come with, in two round trips at most. The decision has named the rows: they may
// be of many tenants.
func (r *Reads) Briefs(ctx context.Context, tasks []models.TaskRef) (map[models.TaskRef]*Brief, error) {
	envs, ids := make([]int32, len(tasks)), make([][16]byte, len(tasks))
	for i, t := range tasks {
		envs[i], ids[i] = t.Env, t.ID
	}
	all := make(map[models.TaskRef]*Brief, len(tasks))
	err := r.db.Platform().Read(ctx, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, `SELECT s.env, s.id, coalesce(o.payload, s.payload), coalesce(o.input, s.input), coalesce(s.trace, ''), p.checkpoint,
			EXISTS (SELECT 1 FROM edges e WHERE e.env = s.env AND e.to_task = s.id AND e.fires_on < 3)
			FROM unnest($1::int[], $2::uuid[]) AS want (env, id)
			JOIN specs s ON s.env = want.env AND s.id = want.id
			LEFT JOIN overrides o ON o.env = s.env AND o.task = s.id
			LEFT JOIN progress p ON p.env = s.env AND p.task = s.id`, envs, ids)
		if err != nil {
			return err
		}
		var ref models.TaskRef
		var payload, checkpoint *string
		var input, trace string
		var waited bool
		var waiters []models.TaskRef
		_, err = pgx.ForEachRow(rows, []any{&ref.Env, idTo(&ref.ID), &payload, &input, &trace, &checkpoint, &waited}, func() error {
			all[ref] = &Brief{Payload: rawTo(payload), Input: json.RawMessage(input), Trace: trace, Checkpoint: rawTo(checkpoint)}
			if waited {
				waiters = append(waiters, ref)
			}
			return nil
		})
		if err != nil || len(waiters) == 0 {
			return err
		}
		return briefDependencies(ctx, tx, all, waiters)
	})
	return all, peopleError(err)
}

// briefDependencies reads how large the results are before it reads them, so that no claim pulls a gigabyte.
func briefDependencies(ctx context.Context, tx pgx.Tx, all map[models.TaskRef]*Brief, waiters []models.TaskRef) error {
	envs, ids := make([]int32, len(waiters)), make([][16]byte, len(waiters))
	for i, t := range waiters {
		envs[i], ids[i] = t.Env, t.ID
	}
	rows, err := tx.Query(ctx, `SELECT e.env, e.to_task, count(*), coalesce(sum((SELECT octet_length(a.result) FROM attempts a
			WHERE a.env = e.env AND a.task = e.from_task AND a.outcome = 1 ORDER BY a.n DESC LIMIT 1)), 0)
		FROM unnest($1::int[], $2::uuid[]) AS want (env, id) JOIN edges e ON e.env = want.env AND e.to_task = want.id AND e.fires_on < 3
		GROUP BY e.env, e.to_task`, envs, ids)
	if err != nil {
		return err
	}
	var ref models.TaskRef
	var n, size, sum int64
	envs, ids = envs[:0], ids[:0]
	_, err = pgx.ForEachRow(rows, []any{&ref.Env, idTo(&ref.ID), &n, &size}, func() error {
		if n > ClaimDependencies || size > ClaimResultBytes || sum+size > claimAllResults {
			all[ref].Many = true
			return nil
		}
		sum += size
		envs, ids = append(envs, ref.Env), append(ids, ref.ID)
		return nil
	})
	if err != nil || len(ids) == 0 {
		return err
	}
	rows, err = tx.Query(ctx, `SELECT e.env, e.to_task, `+dependencyColumns+` FROM unnest($1::int[], $2::uuid[]) AS want (env, id)
		JOIN edges e ON e.env = want.env AND e.to_task = want.id AND e.fires_on < 3 `+dependencyJoin+` ORDER BY e.from_task`, envs, ids)
	if err != nil {
		return err
	}
	var d Dependency
	var result *string
	_, err = pgx.ForEachRow(rows, append([]any{&ref.Env, idTo(&ref.ID)}, d.targets(&result)...), func() error {
		d.Result = rawTo(result)
		all[ref].Dependencies = append(all[ref].Dependencies, d)
		return nil
	})
	return err
}

const dependencyColumns = `coalesce(f.key, ''), f.id, f.state, done.result`

const dependencyJoin = `JOIN tasks f ON f.env = e.env AND f.id = e.from_task
	LEFT JOIN LATERAL (SELECT a.result FROM attempts a WHERE f.state = 8 AND a.env = f.env AND a.task = f.id AND a.outcome = 1
		ORDER BY a.n DESC LIMIT 1) done ON true`

func (d *Dependency) targets(result **string) []any {
	return []any{&d.Key, idTo(&d.Task), (*int16)(&d.State), result}
}

// DependencyList asks for a page of what a task waited for, by id.
type DependencyList struct {
	After models.ID // the last of the page before, where there is More
	More  bool
	Desc  bool
	Limit int
}

// Dependencies lists what a task waited for, in the order of ids, and counts it.
func (r *Reads) Dependencies(ctx context.Context, ref models.TaskRef, ask DependencyList) (list []Dependency, all int64, err error) {
	w := &where{}
	w.add(`e.env = $? AND e.to_task = $? AND e.fires_on < 3`, ref.Env, idArg(ref.ID))
	counted, args := w.String(), w.args
	order := map[bool]string{true: "DESC", false: "ASC"}[ask.Desc]
	if ask.More {
		w.add(map[bool]string{true: `e.from_task < $?`, false: `e.from_task > $?`}[ask.Desc], idArg(ask.After))
	}
	err = r.db.Platform().Read(ctx, func(tx pgx.Tx) error {
		if err := tx.QueryRow(ctx, `SELECT count(*) FROM edges e WHERE `+counted, args...).Scan(&all); err != nil {
			return err
		}
		rows, err := tx.Query(ctx, fmt.Sprintf(`SELECT %s FROM edges e %s WHERE %s ORDER BY e.from_task %s LIMIT %d`, dependencyColumns, dependencyJoin, w, order, ask.Limit), w.args...)
		if err != nil {
			return err
		}
		list, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (d Dependency, err error) {
			var result *string
			err = row.Scan(d.targets(&result)...)
			d.Result = rawTo(result)
			return d, err
		})
		return err
	})
	return list, all, peopleError(err)
}

// HoldsLease says whether the token is that of the task's live lease.
func (r *Reads) HoldsLease(ctx context.Context, ref models.TaskRef, token models.ID) (holds bool, err error) {
	err = r.db.Platform().Read(ctx, func(tx pgx.Tx) error {
		return tx.QueryRow(ctx, `SELECT EXISTS (SELECT 1 FROM tasks WHERE env = $1 AND id = $2 AND token = $3 AND state IN (4, 6))`,
			ref.Env, idArg(ref.ID), idArg(token)).Scan(&holds)
	})
	return holds, peopleError(err)
}
