package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"nightshift/models"
)

// Member is a task of a workflow by its key.
type Member struct {
	Key string
	ID  models.ID
}

// Members lists the keys of a workflow's own tasks, children of tasks apart, in the order they were given.
func (r *Reads) Members(ctx context.Context, scope Scope, env int32, flow models.ID) (list []Member, err error) {
	err = r.scoped(ctx, scope, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, `SELECT coalesce(t.key, ''), t.id FROM tasks t
			WHERE t.env = $1 AND t.workflow = $2 AND t.parent IS NULL AND `+shown+` ORDER BY t.id`, env, idArg(flow))
		if err != nil {
			return err
		}
		list, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (m Member, err error) {
			err = row.Scan(&m.Key, idTo(&m.ID))
			return m, err
		})
		return err
	})
	return list, err
}

// Member finds a workflow's task by its key; not_found when there is none.
func (r *Reads) Member(ctx context.Context, scope Scope, env int32, flow models.ID, key string) (id models.ID, err error) {
	found := false
	err = r.scoped(ctx, scope, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, `SELECT t.id FROM tasks t WHERE t.env = $1 AND t.workflow = $2 AND t.key = $3 AND t.parent IS NULL AND `+shown,
			env, idArg(flow), key)
		if err != nil {
			return err
		}
		_, err = pgx.ForEachRow(rows, []any{idTo(&id)}, func() error { found = true; return nil })
		return err
	})
	if err == nil && !found {
		err = models.Errorf(models.NotFound, "the workflow has no task with the key %q", key)
	}
	return id, err
}

// Siblings finds children of a task by their keys; keys that none has are left out.
func (r *Reads) Siblings(ctx context.Context, parent models.TaskRef, keys []string) (found map[string]models.ID, err error) {
	found = map[string]models.ID{}
	err = r.db.Platform().Read(ctx, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, `SELECT key, id FROM tasks WHERE env = $1 AND parent = $2 AND parent IS NOT NULL AND key = ANY ($3)`, parent.Env, idArg(parent.ID), keys)
		if err != nil {
			return err
		}
		var m Member
		_, err = pgx.ForEachRow(rows, []any{&m.Key, idTo(&m.ID)}, func() error { found[m.Key] = m.ID; return nil })
		return err
	})
	return found, peopleError(err)
}

// WaitsFor says whether one of some tasks waits for another one, however far: for what it depends on, and for its children. Each of
// them waits for itself.
func (r *Reads) WaitsFor(ctx context.Context, tasks []models.ID, target models.TaskRef) (waits bool, err error) {
	err = r.db.Platform().Read(ctx, func(tx pgx.Tx) error {
		return tx.QueryRow(ctx, `WITH RECURSIVE before (id) AS (
				SELECT unnest($2::uuid[]) UNION
				SELECT e.from_task FROM before b JOIN edges e ON e.env = $1 AND e.to_task = b.id AND e.state <> 1 AND e.state <> 2)
			SELECT EXISTS (SELECT FROM before WHERE id = $3)`, target.Env, idArgs(tasks), idArg(target.ID)).Scan(&waits)
	})
	return waits, peopleError(err)
}

// DeadDependencies are the dead letters that a task still waits for, at most a few: their keys, or their ids where they have
// none.
func (r *Reads) DeadDependencies(ctx context.Context, scope Scope, env int32, id models.ID) (names []string, err error) {
	err = r.scoped(ctx, scope, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, `SELECT coalesce(f.key, ''), f.id FROM edges e JOIN tasks f ON f.env = e.env AND f.id = e.from_task
			WHERE e.env = $1 AND e.to_task = $2 AND e.state = 0 AND f.state = 7 ORDER BY f.id LIMIT 5`, env, idArg(id))
		if err != nil {
			return err
		}
		var m Member
		_, err = pgx.ForEachRow(rows, []any{&m.Key, idTo(&m.ID)}, func() error {
			if m.Key == "" {
				m.Key = m.ID.Text(models.TaskPrefix)
			}
			names = append(names, m.Key)
			return nil
		})
		return err
	})
	return names, err
}

// mostPosition is how far places in a line are counted.
const mostPosition = 100_000

// Position is a ready task's place in its line by rank, 1 for the first: 0 where it stands too far behind to be counted.
func (r *Reads) Position(ctx context.Context, scope Scope, row *models.Task) (n int64, err error) {
	err = r.scoped(ctx, scope, func(tx pgx.Tx) error {
		return tx.QueryRow(ctx, `SELECT count(*) FROM (
				SELECT FROM tasks t WHERE t.lane = $1 AND t.env = $2 AND t.class = $3 AND t.state = 3 AND t.gate IS NULL AND (t.age_key, t.id) <= ($4, $5)
				ORDER BY t.lane, t.env, t.class, t.age_key, t.id LIMIT $6
			) t`, row.Lane, row.Env, row.Class, row.AgeKey, idArg(row.ID), mostPosition+1).Scan(&n)
	})
	if n > mostPosition {
		n = 0
	}
	return n, err
}
