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
			WHERE t.env = $1 AND t.workflow = $2 AND t.parent IS NULL ORDER BY t.id`, env, idArg(flow))
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
		rows, err := tx.Query(ctx, `SELECT t.id FROM tasks t WHERE t.env = $1 AND t.workflow = $2 AND t.key = $3 AND t.parent IS NULL`,
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
