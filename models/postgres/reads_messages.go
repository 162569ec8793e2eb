package postgres

import (
	"context"
	"encoding/json"
	"fmt"
	"math"

	"github.com/jackc/pgx/v5"

	"nightshift/models"
)

const messageColumns = `m.env, m.source, m.name, m.seq, m.id, m.at, coalesce(m.key, ''), m.data, m.size, m.matched`

func messageTargets(m *models.Message, data *string) []any {
	return []any{&m.Env, (*int16)(&m.Source), &m.Name, &m.Seq, idTo(&m.ID), atTo(&m.At), &m.Key, data, &m.Size, &m.Matched}
}

func readMessage(row pgx.CollectableRow) (m models.Message, err error) {
	var data string
	err = row.Scan(messageTargets(&m, &data)...)
	m.Data = json.RawMessage(data)
	return m, err
}

// Message is a trigger or an item by its id.
func (r *Reads) Message(ctx context.Context, scope Scope, env int32, source models.Source, id models.ID) (m models.Message, err error) {
	prefix := models.EventPrefix
	if source == models.FromQueue {
		prefix = models.ItemPrefix
	}
	return one(ctx, r.db.For(scope), "message", id.Text(prefix), readMessage,
		`SELECT `+messageColumns+` FROM messages m WHERE m.id = $1 AND m.env = $2 AND m.source = $3`, idArg(id), env, int16(source))
}

// TakenBy reads what tasks took of their feeds, by the runs that made them, oldest first: their own portion (-1: the one that
// names the task), or what the whole run is about. The decision has named them: they may be of many tenants.
func (r *Reads) TakenBy(ctx context.Context, tasks []models.TaskRef, runs []models.ID, portions []int32) (map[models.TaskRef][]models.Message, error) {
	envs, ids, of := make([]int32, len(tasks)), make([][16]byte, len(tasks)), make([][16]byte, len(tasks))
	for i, t := range tasks {
		envs[i], ids[i], of[i] = t.Env, t.ID, runs[i]
	}
	all := map[models.TaskRef][]models.Message{}
	err := r.db.Platform().Read(ctx, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, `SELECT want.task, `+messageColumns+` FROM unnest($1::int[], $2::uuid[], $3::uuid[], $4::int[]) AS want (env, task, run, portion)
			JOIN takes t ON t.env = want.env AND t.run = want.run AND (t.task IS NULL OR t.n = want.portion OR want.portion < 0 AND t.task = want.task)
			JOIN messages m ON m.source = t.source AND m.env = t.env AND m.name = t.name AND m.seq BETWEEN t.first AND t.last
			ORDER BY want.env, want.task, m.seq`, envs, ids, of, portions)
		if err != nil {
			return err
		}
		var task models.ID
		var m models.Message
		var data string
		_, err = pgx.ForEachRow(rows, append([]any{idTo(&task)}, messageTargets(&m, &data)...), func() error {
			m.Data = json.RawMessage(data)
			ref := models.TaskRef{Env: m.Env, ID: task}
			all[ref] = append(all[ref], m)
			return nil
		})
		return err
	})
	return all, peopleError(err)
}

// TakesOf are the takes of runs, in order.
func (w *World) TakesOf(ctx context.Context, scope Scope, env int32, runs []models.ID) (out map[models.ID][]models.Take, err error) {
	ids := make([][16]byte, len(runs))
	for i, id := range runs {
		ids[i] = id
	}
	out = map[models.ID][]models.Take{}
	err = w.db.For(scope).Read(ctx, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, `SELECT t.run, t.n, t.source, t.name, t.first, t.last, t.count, t.bytes, coalesce(t.task, '00000000-0000-0000-0000-000000000000')
			FROM takes t WHERE t.env = $1 AND t.run = ANY ($2) ORDER BY t.run, t.n`, env, ids)
		if err != nil {
			return err
		}
		t := models.Take{Env: env}
		_, err = pgx.ForEachRow(rows, []any{idTo(&t.Run), &t.N, (*int16)(&t.Source), &t.Name, &t.First, &t.Last, &t.Count, &t.Bytes, idTo(&t.Task)}, func() error {
			out[t.Run] = append(out[t.Run], t)
			return nil
		})
		return err
	})
	return out, peopleError(err)
}

// EventsOf reads the triggers that runs took, oldest first.
func (w *World) EventsOf(ctx context.Context, scope Scope, env int32, runs []models.ID) (out map[models.ID][]models.Message, err error) {
	ids := make([][16]byte, len(runs))
	for i, id := range runs {
		ids[i] = id
	}
	out = map[models.ID][]models.Message{}
	err = w.db.For(scope).Read(ctx, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, `SELECT t.run, `+messageColumns+` FROM takes t
			JOIN messages m ON m.source = t.source AND m.env = t.env AND m.name = t.name AND m.seq BETWEEN t.first AND t.last
			WHERE t.env = $1 AND t.run = ANY ($2) AND t.source = 0 ORDER BY t.run, m.seq`, env, ids)
		if err != nil {
			return err
		}
		var run models.ID
		var m models.Message
		var data string
		_, err = pgx.ForEachRow(rows, append([]any{idTo(&run)}, messageTargets(&m, &data)...), func() error {
			m.Data = json.RawMessage(data)
			out[run] = append(out[run], m)
			return nil
		})
		return err
	})
	return out, peopleError(err)
}

// TakenList asks for a page of what a run took, by the numbers of the messages.
type TakenList struct {
	After int64 // of the last row of the page before; 0: from the beginning
	Desc  bool
	Limit int
}

// TakenMessages lists what a run took, and says how many that is.
func (w *World) TakenMessages(ctx context.Context, scope Scope, env int32, run models.ID, ask TakenList) (list []models.Message, total int64, err error) {
	order, beyond, after := "ASC", ">", ask.After
	if ask.Desc {
		order, beyond = "DESC", "<"
		if after == 0 {
			after = math.MaxInt64
		}
	}
	err = w.db.For(scope).Read(ctx, func(tx pgx.Tx) error {
		if err := tx.QueryRow(ctx, `SELECT coalesce(sum(t.count), 0) FROM takes t WHERE t.env = $1 AND t.run = $2`, env, idArg(run)).Scan(&total); err != nil {
			return err
		}
		rows, err := tx.Query(ctx, fmt.Sprintf(`SELECT %s FROM takes t JOIN messages m ON m.source = t.source AND m.env = t.env AND m.name = t.name
			AND m.seq BETWEEN t.first AND t.last WHERE t.env = $1 AND t.run = $2 AND m.seq %s $3 ORDER BY m.seq %s LIMIT %d`,
			messageColumns, beyond, order, ask.Limit), env, idArg(run), after)
		if err != nil {
			return err
		}
		list, err = pgx.CollectRows(rows, readMessage)
		return err
	})
	return list, total, peopleError(err)
}
