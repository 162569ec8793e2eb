package postgres

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/jackc/pgx/v5"

	"nightshift/models"
)

// Quotas are a tenant's; a first version without limits where nobody has set any.
func (w *World) Quotas(ctx context.Context, tenant int32) (models.Quotas, error) {
	q := models.Quotas{Tenant: tenant, Version: 1}
	err := maybe(ctx, w.db.For(Scope{Tenant: tenant}), &q, func(row pgx.CollectableRow) (q models.Quotas, err error) {
		err = row.Scan(&q.Tenant, &q.MaxConcurrent, &q.MaxQueued, &q.MaxGPUs, &q.MaxVRAMMB, &q.TokensPerMinute, &q.RequestsPerMinute,
			&q.MaxSchedules, &q.MinIntervalSeconds, &q.UpdatedAt, &q.Version)
		return q, err
	}, `SELECT tenant, max_concurrent, max_queued, max_gpus, max_vram_mb, tokens_per_minute, requests_per_minute, max_schedules,
		min_interval_seconds, updated_at, version FROM quotas WHERE tenant = $1`, tenant)
	return q, err
}

// Grants are what tasks of an environment may ask for; a first version that grants nothing where nobody has granted any.
func (w *World) Grants(ctx context.Context, scope Scope, env int32) (models.Grants, error) {
	g := models.Grants{Env: env, Version: 1}
	err := maybe(ctx, w.db.For(scope), &g, func(row pgx.CollectableRow) (g models.Grants, err error) {
		err = row.Scan(&g.Env, &g.Granted, &g.UpdatedAt, &g.Version)
		return g, err
	}, `SELECT env, granted, updated_at, version FROM permissions WHERE env = $1`, env)
	return g, err
}

const typeColumns = `env, type, input_schema, schema, max_concurrent, paused, reason, updated_at, version`

func readType(row pgx.CollectableRow) (t models.TaskType, err error) {
	var schema *string
	err = row.Scan(&t.Env, &t.Type, &schema, &t.Schema, &t.MaxConcurrent, &t.Paused, &t.Reason, &t.UpdatedAt, &t.Version)
	if schema != nil {
		t.InputSchema = json.RawMessage(*schema)
	}
	return t, err
}

// TaskType is what an environment says of a type; a first version that says nothing where nobody has said anything.
func (w *World) TaskType(ctx context.Context, scope Scope, env int32, name string) (models.TaskType, error) {
	t := models.TaskType{Env: env, Type: name, Version: 1}
	err := maybe(ctx, w.db.For(scope), &t, readType, `SELECT `+typeColumns+` FROM task_types WHERE env = $1 AND type = $2`, env, name)
	return t, err
}

// TaskTypes lists the types an environment says anything of by name, those beyond one.
func (w *World) TaskTypes(ctx context.Context, scope Scope, env int32, after string, desc bool, limit int) (list []models.TaskType, total int64, err error) {
	beyond, order := ">", "ASC"
	if desc {
		beyond, order = "<", "DESC"
	}
	where, args := `env = $1`, []any{env}
	if after != "" {
		where, args = where+` AND type `+beyond+` $2`, append(args, after)
	}
	err = w.db.For(scope).Read(ctx, func(tx pgx.Tx) error {
		if err := tx.QueryRow(ctx, `SELECT count(*) FROM task_types WHERE env = $1`, env).Scan(&total); err != nil {
			return err
		}
		rows, err := tx.Query(ctx, fmt.Sprintf(`SELECT %s FROM task_types WHERE %s ORDER BY type %s LIMIT %d`, typeColumns, where, order, limit), args...)
		if err != nil {
			return err
		}
		list, err = pgx.CollectRows(rows, readType)
		return err
	})
	return list, total, peopleError(err)
}

// Schemas are the types of an environment that have an input schema, for whoever submits to it.
func (w *World) Schemas(ctx context.Context, env int32) (list []models.TaskType, err error) {
	err = w.db.Platform().Read(ctx, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, `SELECT `+typeColumns+` FROM task_types WHERE env = $1 AND schema > 0`, env)
		if err != nil {
			return err
		}
		list, err = pgx.CollectRows(rows, readType)
		return err
	})
	return list, peopleError(err)
}

// maybe reads a row that may not be there; found stays as it is then.
func maybe[T any](ctx context.Context, as *Scoped, found *T, read func(pgx.CollectableRow) (T, error), sql string, args ...any) error {
	err := as.Read(ctx, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, sql, args...)
		if err != nil {
			return err
		}
		list, err := pgx.CollectRows(rows, read)
		if len(list) == 1 {
			*found = list[0]
		}
		return err
	})
	return peopleError(err)
}
