package postgres

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/jackc/pgx/v5"

	"nightshift/models"
)

// ItemsOf reads how far the items of tasks are, for whoever holds their leases.
func (r *Reads) ItemsOf(ctx context.Context, tasks []models.TaskRef) (map[models.TaskRef]models.Items, error) {
	envs, ids := make([]int32, len(tasks)), make([][16]byte, len(tasks))
	for i, t := range tasks {
		envs[i], ids[i] = t.Env, t.ID
	}
	all := make(map[models.TaskRef]models.Items, len(tasks))
	err := r.db.Platform().Read(ctx, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, statements["fact_items"], envs, ids)
		if err != nil {
			return err
		}
		var i models.Items
		var left *string
		_, err = pgx.ForEachRow(rows, []any{&i.Env, idTo(&i.Task), idTo(&i.Workflow), &i.First, &i.Total, &i.Done, &i.Used, &left}, func() (err error) {
			i.Left, err = itemsLeft(rawTo(left))
			all[models.TaskRef{Env: i.Env, ID: i.Task}] = i
			return err
		})
		return err
	})
	return all, peopleError(err)
}

// BatchCounts is how far a batch is.
type BatchCounts struct {
	Done   int64
	Failed int64 // that failed and are not tried again by themselves
	Again  int64 // that failed when last tried and are tried again
}

// someOver says whether there are items that are not tried again with the others of their slice i, whose task is t.
const someOver = `(i.used = t.attempts_used AND strpos(i.remain, '"Over":true') > 0)`

// BatchCounts adds up how far the slices of batches are.
func (r *Reads) BatchCounts(ctx context.Context, scope Scope, env int32, flows []models.ID) (map[models.ID]BatchCounts, error) {
	ids := make([][16]byte, len(flows))
	for i, id := range flows {
		ids[i] = id
	}
	all := make(map[models.ID]BatchCounts, len(flows))
	err := r.scoped(ctx, scope, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, `SELECT i.workflow, sum(i.done)::bigint,
				sum(CASE WHEN t.state IN (7, 9) THEN s.kept WHEN t.state < 7 THEN s.over ELSE 0 END)::bigint,
				sum(CASE WHEN t.state < 7 AND i.remain IS NOT NULL THEN s.kept - s.over ELSE 0 END)::bigint
			FROM task_items i JOIN tasks t ON t.env = i.env AND t.id = i.task,
				LATERAL (SELECT CASE WHEN i.done = i.total THEN 0 WHEN i.remain IS NOT NULL THEN json_array_length(i.remain::json) ELSE i.total - i.done END AS kept,
					CASE WHEN `+someOver+` THEN (SELECT count(*) FROM json_array_elements(i.remain::json) e WHERE e->>'Over' = 'true') ELSE 0 END AS over) s
			WHERE i.env = $1 AND i.workflow = ANY ($2) GROUP BY i.workflow`, env, ids)
		if err != nil {
			return err
		}
		var flow models.ID
		var n BatchCounts
		_, err = pgx.ForEachRow(rows, []any{idTo(&flow), &n.Done, &n.Failed, &n.Again}, func() error { all[flow] = n; return nil })
		return err
	})
	return all, err
}

// FailedItem is an item of a batch that failed for good.
type FailedItem struct {
	Index   int64 // within the batch
	Class   string
	Message string
}

// FailedItems lists the items of a batch that failed and are not tried again by themselves, from a place on.
func (r *Reads) FailedItems(ctx context.Context, scope Scope, env int32, flow models.ID, from int64, most int) (list []FailedItem, err error) {
	err = r.scoped(ctx, scope, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, fmt.Sprintf(`SELECT i.first, i.total, i.used, i.remain, t.attempts_used, t.state < 7, coalesce(t.error_class, '') FROM task_items i
			JOIN tasks t ON t.env = i.env AND t.id = i.task WHERE i.env = $1 AND i.workflow = $2 AND i.done < i.total
			AND (t.state IN (7, 9) OR t.state < 7 AND `+someOver+`) AND i.first + i.total > $3 ORDER BY i.first LIMIT %d`, most), env, idArg(flow), from)
		if err != nil {
			return err
		}
		var s models.Items
		var left *string
		var class string
		var used int32
		var live bool
		_, err = pgx.ForEachRow(rows, []any{&s.First, &s.Total, &s.Used, &left, &used, &live, &class}, func() (err error) {
			if s.Left, err = itemsLeft(json.RawMessage(rawTo(left))); err != nil || len(list) > most {
				return err
			}
			s.Start(used)
			for _, it := range s.Left {
				f := FailedItem{Index: int64(s.First + it.Index), Class: it.Class, Message: it.Message}
				if f.Class == "" {
					f.Class = class
				}
				if f.Index >= from && (it.Over || !live) {
					list = append(list, f)
				}
			}
			return nil
		})
		return err
	})
	return list[:min(len(list), most)], err
}
