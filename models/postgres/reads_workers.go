package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"nightshift/models"
)

// WorkerFilter says which workers a list shows. A tenant sees its own and those that serve every tenant; the platform all.
type WorkerFilter struct {
	Tenant   int32
	Platform bool
	States   []models.WorkerState // empty: those that are not gone
	Pools    []string
	After    models.ID
	Desc     bool
	Limit    int
}

func (f *WorkerFilter) where() *where {
	w := &where{}
	if !f.Platform {
		w.add(`tenant IN (0, $?)`, f.Tenant)
	}
	if len(f.States) == 0 {
		w.add(`state < 2`)
	} else {
		states := make([]int16, len(f.States))
		for i, s := range f.States {
			states[i] = int16(s)
		}
		w.add(`state = ANY ($?)`, states)
	}
	if len(f.Pools) > 0 {
		w.add(`pool = ANY ($?)`, f.Pools)
	}
	return w
}

const readWorkerColumns = `id, tenant, env, key_id, name, instance, version, pool, task_types, lanes, kinds, cpu_milli, memory_mb, disk_mb,
	gpus::text, slots, kind_slots::text, models, permissions, labels::text, lease_seconds, session, state, draining, last_seen,
	created_at, updated_at, utilization, any_model, any_permit`

func readWorker(row pgx.CollectableRow) (w models.Worker, err error) {
	var kinds []int16
	var gpus, slots, labels string
	var utilization *string
	err = row.Scan(idTo(&w.ID), &w.Tenant, &w.Env, &w.KeyID, &w.Name, &w.Instance, &w.Version, &w.Pool, &w.TaskTypes, &w.Lanes, &kinds, &w.CPUMilli,
		&w.MemoryMB, &w.DiskMB, &gpus, &w.Slots, &slots, &w.Models, &w.Permissions, &labels, &w.LeaseSeconds, idTo(&w.Session),
		(*int16)(&w.State), &w.Draining, atTo(&w.LastSeen), atTo(&w.CreatedAt), atTo(&w.UpdatedAt), &utilization,
		&w.AnyModel, &w.AnyPermit)
	if err != nil {
		return w, err
	}
	for _, k := range kinds {
		w.Kinds = append(w.Kinds, models.KindName(k))
	}
	w.Utilization = rawTo(utilization)
	return w, errors.Join(json.Unmarshal([]byte(gpus), &w.GPUs), json.Unmarshal([]byte(slots), &w.KindSlots), json.Unmarshal([]byte(labels), &w.Labels))
}

// Workers lists workers.
func (r *Reads) Workers(ctx context.Context, f *WorkerFilter) (rows []models.Worker, err error) {
	w := f.where()
	order := "ASC"
	if f.Desc {
		order = "DESC"
	}
	if !f.After.IsZero() {
		w.add(map[bool]string{true: `id < $?`, false: `id > $?`}[f.Desc], idArg(f.After))
	}
	err = r.db.Platform().Read(ctx, func(tx pgx.Tx) error {
		found, err := tx.Query(ctx, fmt.Sprintf(`SELECT %s FROM workers WHERE %s ORDER BY id %s LIMIT %d`, readWorkerColumns, w, order, f.Limit), w.args...)
		if err != nil {
			return err
		}
		rows, err = pgx.CollectRows(found, readWorker)
		return err
	})
	return rows, peopleError(err)
}

// CountWorkers counts what a filter lets pass.
func (r *Reads) CountWorkers(ctx context.Context, f *WorkerFilter) (n int64, err error) {
	w := f.where()
	err = r.db.Platform().Read(ctx, func(tx pgx.Tx) error {
		return tx.QueryRow(ctx, `SELECT count(*) FROM workers WHERE `+w.String(), w.args...).Scan(&n)
	})
	return n, peopleError(err)
}

// Worker reads one worker, gone ones too; not_found when it is not there or another tenant's.
func (r *Reads) Worker(ctx context.Context, tenant int32, platform bool, id models.ID) (w models.Worker, err error) {
	err = r.db.Platform().Read(ctx, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, `SELECT `+readWorkerColumns+` FROM workers WHERE id = $1 AND ($2 OR tenant IN (0, $3))`, idArg(id), platform, tenant)
		if err != nil {
			return err
		}
		found, err := pgx.CollectRows(rows, readWorker)
		if err == nil && len(found) == 0 {
			return models.Errorf(models.NotFound, "there is no %q here", id.Text(models.WorkerPrefix))
		}
		if err == nil {
			w = found[0]
		}
		return err
	})
	return w, peopleError(err)
}

// LeaseCounts counts the live attempts of workers.
func (r *Reads) LeaseCounts(ctx context.Context, workers []models.ID) (map[models.ID]int32, error) {
	counts := map[models.ID]int32{}
	err := r.db.Platform().Read(ctx, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, `SELECT worker, count(*) FROM tasks WHERE state IN (4, 6) AND worker = ANY ($1) GROUP BY worker`, idArgs(workers))
		if err != nil {
			return err
		}
		var id models.ID
		var n int32
		_, err = pgx.ForEachRow(rows, []any{idTo(&id), &n}, func() error { counts[id] = n; return nil })
		return err
	})
	return counts, peopleError(err)
}

// TenantOf is the tenant of an environment; 0 when there is no such environment.
func (r *Reads) TenantOf(ctx context.Context, env int32) (tenant int32, err error) {
	err = r.db.Platform().Read(ctx, func(tx pgx.Tx) error {
		return tx.QueryRow(ctx, `SELECT coalesce((SELECT tenant FROM environments WHERE env = $1), 0)`, env).Scan(&tenant)
	})
	return tenant, peopleError(err)
}
