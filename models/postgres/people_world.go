package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"nightshift/models"
)

// World reads what the brain configures: tenants, environments, kinds, lanes, its audit. It writes nothing.
type World struct{ db *DB }

// NewWorld reads through the pool.
func NewWorld(db *DB) *World { return &World{db: db} }

// RowList asks for a page of rows by their number or id.
type RowList struct {
	After int64 // the last row of the page before; 0: from the beginning
	Desc  bool
	Limit int
}

const tenantColumns = `number, id, slug, name, weight, timezone, suspended, created_at, updated_at, version`

func readTenant(row pgx.CollectableRow) (t models.Tenant, err error) {
	err = row.Scan(&t.Number, (*[16]byte)(&t.ID), &t.Slug, &t.Name, &t.Weight, &t.Timezone, &t.Suspended, &t.CreatedAt, &t.UpdatedAt, &t.Version)
	return t, err
}

// Tenant finds a tenant by its TypeID or slug; not_found when there is none.
func (w *World) Tenant(ctx context.Context, name string) (models.Tenant, error) {
	where, arg := named(models.TenantPrefix, "slug", name)
	return one(ctx, w.db.Platform(), "tenant", name, readTenant, `SELECT `+tenantColumns+` FROM tenants WHERE `+where, arg)
}

// TenantByNumber finds a tenant by its number.
func (w *World) TenantByNumber(ctx context.Context, number int32) (models.Tenant, error) {
	return one(ctx, w.db.Platform(), "tenant", fmt.Sprint(number), readTenant, `SELECT `+tenantColumns+` FROM tenants WHERE number = $1`, number)
}

// Tenants lists them all, for the platform.
func (w *World) Tenants(ctx context.Context, ask RowList) ([]models.Tenant, int64, error) {
	return page(ctx, w.db.Platform(), ask, readTenant, `tenants`, tenantColumns, `number`, `true`)
}

const environmentColumns = `env, id, tenant, name, kind, paused, reason, created_at, updated_at, version, freeze_windows::text`

func readEnvironment(row pgx.CollectableRow) (e models.Environment, err error) {
	var freezes string
	err = row.Scan(&e.Env, (*[16]byte)(&e.ID), &e.Tenant, &e.Name, &e.Kind, &e.Paused, &e.Reason, &e.CreatedAt, &e.UpdatedAt, &e.Version, &freezes)
	if err == nil {
		err = json.Unmarshal([]byte(freezes), &e.Freezes)
	}
	return e, err
}

// Environment finds an environment of a tenant by its TypeID or name.
func (w *World) Environment(ctx context.Context, tenant int32, name string) (models.Environment, error) {
	where, arg := named(models.EnvironmentPrefix, "name", name)
	return one(ctx, w.db.For(Scope{Tenant: tenant}), "environment", name, readEnvironment,
		`SELECT `+environmentColumns+` FROM environments WHERE tenant = $2 AND closed_at = 0 AND `+where, arg, tenant)
}

// Environments lists a tenant's.
func (w *World) Environments(ctx context.Context, tenant int32, ask RowList) ([]models.Environment, int64, error) {
	return page(ctx, w.db.For(Scope{Tenant: tenant}), ask, readEnvironment, `environments`, environmentColumns, `env`, `tenant = $1 AND closed_at = 0`, tenant)
}

// Unfinished says whether an environment holds a task that is not final, or a body that is still coming in.
func (w *World) Unfinished(ctx context.Context, scope Scope, env int32) (unfinished bool, err error) {
	err = w.db.For(scope).Read(ctx, func(tx pgx.Tx) error {
		return tx.QueryRow(ctx, `SELECT EXISTS (SELECT FROM tasks WHERE env = $1 AND state < 8)`, env).Scan(&unfinished)
	})
	return unfinished, peopleError(err)
}

const laneColumns = `number, env, name, kind, weight, max_concurrent, high_water, task_types, paused, draining, reason, first,
	description, owner, runbook_url, created_at, updated_at, version, open_windows, elastic, yields_to, max_hold, defaults`

func readLane(row pgx.CollectableRow) (l models.Lane, err error) {
	err = row.Scan(&l.Number, &l.Env, &l.Name, (*int16)(&l.Kind), &l.Weight, &l.MaxConcurrent, &l.HighWater, &l.TaskTypes, &l.Paused,
		&l.Draining, &l.Reason, &l.First, &l.Description, &l.Owner, &l.RunbookURL, &l.CreatedAt, &l.UpdatedAt, &l.Version, &l.OpenWindows, &l.Elastic, &l.YieldsTo, &l.MaxHold, &l.Defaults)
	return l, err
}

// Lane finds a lane of an environment by name.
func (w *World) Lane(ctx context.Context, scope Scope, env int32, name string) (models.Lane, error) {
	return one(ctx, w.db.For(scope), "lane", name, readLane, `SELECT `+laneColumns+` FROM lanes WHERE env = $1 AND name = $2`, env, name)
}

// Lanes lists an environment's.
func (w *World) Lanes(ctx context.Context, scope Scope, env int32, ask RowList) ([]models.Lane, int64, error) {
	return page(ctx, w.db.For(scope), ask, readLane, `lanes`, laneColumns, `number`, `env = $1`, env)
}

const kindColumns = `name, precedence, weight, min_share, elastic, yields_to, max_hold, updated_at, version`

func readKind(row pgx.CollectableRow) (k models.Kind, err error) {
	err = row.Scan((*int16)(&k.Name), &k.Precedence, &k.Weight, &k.MinShare, &k.Elastic, &k.YieldsTo, &k.MaxHold, &k.UpdatedAt, &k.Version)
	return k, err
}

// Kinds lists the four, with their defaults where nobody edited them yet.
func (w *World) Kinds(ctx context.Context) ([]models.Kind, error) {
	kinds := models.DefaultKinds()
	err := w.db.Platform().Read(ctx, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, `SELECT `+kindColumns+` FROM kinds`)
		if err != nil {
			return err
		}
		edited, err := pgx.CollectRows(rows, readKind)
		for _, k := range edited {
			kinds[k.Name] = k
		}
		return err
	})
	return kinds, peopleError(err)
}

// named is how a thing is found: by its TypeID where the text is one, else by its name.
func named(prefix, column, text string) (where string, arg any) {
	if strings.HasPrefix(text, prefix+"_") {
		if id, err := models.ParseID(prefix, text); err == nil {
			return "id = $1", [16]byte(id)
		}
	}
	return column + " = $1", text
}

func one[T any](ctx context.Context, as *Scoped, noun, name string, read func(pgx.CollectableRow) (T, error), sql string, args ...any) (found T, err error) {
	err = as.Read(ctx, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, sql, args...)
		if err != nil {
			return err
		}
		found, err = pgx.CollectExactlyOneRow(rows, read)
		return err
	})
	if errors.Is(err, pgx.ErrNoRows) {
		return found, models.Errorf(models.NotFound, "there is no %s %q here", noun, name)
	}
	return found, peopleError(err)
}

// page reads the rows of a page and how many rows there are in all.
func page[T any](ctx context.Context, as *Scoped, ask RowList, read func(pgx.CollectableRow) (T, error), table, columns, key, where string, args ...any) (out []T, total int64, err error) {
	order, beyond := "ASC", ">"
	if ask.Desc {
		order, beyond = "DESC", "<"
	}
	from := where
	if ask.After != 0 {
		from += fmt.Sprintf(" AND %s %s %d", key, beyond, ask.After)
	}
	err = as.Read(ctx, func(tx pgx.Tx) error {
		if err := tx.QueryRow(ctx, `SELECT count(*) FROM `+table+` WHERE `+where, args...).Scan(&total); err != nil {
			return err
		}
		rows, err := tx.Query(ctx, fmt.Sprintf(`SELECT %s FROM %s WHERE %s ORDER BY %s %s LIMIT %d`, columns, table, from, key, order, ask.Limit), args...)
		if err != nil {
			return err
		}
		out, err = pgx.CollectRows(rows, read)
		return err
	})
	return out, total, peopleError(err)
}

// Variables are an environment's; of version 1 before any were set.
func (w *World) Variables(ctx context.Context, scope Scope, env int32) (v models.Variables, err error) {
	v = models.Variables{Env: env, Version: models.FirstVariables}
	err = w.db.For(scope).Read(ctx, func(tx pgx.Tx) error {
		var text string
		err := tx.QueryRow(ctx, `SELECT vars::text, version, at FROM variables WHERE env = $1`, env).Scan(&text, &v.Version, &v.At)
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		if err != nil {
			return err
		}
		return json.Unmarshal([]byte(text), &v.Vars)
	})
	return v, peopleError(err)
}
