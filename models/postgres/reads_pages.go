package postgres

import (
	"context"
	"encoding/json"

	"github.com/jackc/pgx/v5"
	"gorm.io/gorm"

	"nightshift/models"
)

// LastRuns reads the last runs of some schedules, at most each of every one, newest first: each is one short walk of an
// index, however many runs there are.
func (w *World) LastRuns(ctx context.Context, scope Scope, env int32, schedules []models.ID, each int) (map[models.ID][]RunRow, error) {
	ids := make([][16]byte, len(schedules))
	for i, id := range schedules {
		ids[i] = id
	}
	out := map[models.ID][]RunRow{}
	err := w.db.For(scope).Read(ctx, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, `SELECT `+runColumns+` FROM unnest($2::uuid[]) AS wanted(schedule),
			LATERAL (SELECT * FROM schedule_runs of WHERE of.env = $1 AND of.schedule = wanted.schedule ORDER BY of.id DESC LIMIT $3) r
			`+runWork+` ORDER BY r.id DESC`, env, ids, each)
		if err != nil {
			return err
		}
		found, err := pgx.CollectRows(rows, readRun)
		for _, run := range found {
			out[run.Schedule] = append(out[run.Schedule], run)
		}
		return err
	})
	return out, peopleError(err)
}

// Users finds people by their ids.
func (p *People) Users(ctx context.Context, ids []models.ID) (out []User, err error) {
	if len(ids) == 0 {
		return nil, nil
	}
	keys := make([]UUID, len(ids))
	for i, id := range ids {
		keys[i] = UUID(id)
	}
	err = p.gorm(ctx, func(tx *gorm.DB) error { return tx.Where("id IN ?", keys).Find(&out).Error })
	return out, err
}

// lookedBack is how many batches before the newest are searched for an environment's last events.
const lookedBack = 20_000

// LastEvents reads the last events of an environment, newest first, as far as they lie among the newest batches: a walk of
// the key's end, whatever the table holds.
func (db *DB) LastEvents(ctx context.Context, env int32, most int) (out []models.Event, err error) {
	err = db.Platform().Read(ctx, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, `SELECT items FROM events WHERE env = $1 AND batch > (SELECT max(batch) FROM events) - $2
			ORDER BY batch DESC LIMIT $3`, env, lookedBack, most)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() && len(out) < most {
			var text []byte
			var items []models.Event
			if err := rows.Scan(&text); err != nil {
				return err
			}
			if err := json.Unmarshal(text, &items); err != nil {
				return err
			}
			for i := len(items) - 1; i >= 0 && len(out) < most; i-- {
				items[i].Env = env
				out = append(out, items[i])
			}
		}
		return rows.Err()
	})
	return out, peopleError(err)
}

// Timing is what of a schedule says when it runs next.
type Timing struct {
	ID        models.ID
	Name      string
	Rule      models.ScheduleRule
	CreatedAt models.Instant
	Mark      models.Instant
}

// Timings reads when the newest enabled schedules of an environment run.
func (w *World) Timings(ctx context.Context, scope Scope, env int32, most int) (out []Timing, err error) {
	err = w.db.For(scope).Read(ctx, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, `SELECT s.id, s.name, s.rule::text, s.created_at, t.mark FROM schedules s JOIN schedule_states t ON t.env = s.env AND t.id = s.id
			WHERE s.env = $1 AND t.enabled ORDER BY s.id DESC LIMIT $2`, env, most)
		if err != nil {
			return err
		}
		out, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (v Timing, err error) {
			var rule string
			if err := row.Scan((*[16]byte)(&v.ID), &v.Name, &rule, &v.CreatedAt, &v.Mark); err != nil {
				return v, err
			}
			return v, json.Unmarshal([]byte(rule), &v.Rule)
		})
		return err
	})
	return out, peopleError(err)
}

// ScheduleNames finds the names of some schedules.
func (w *World) ScheduleNames(ctx context.Context, scope Scope, env int32, schedules []models.ID) (map[models.ID]string, error) {
	ids := make([][16]byte, len(schedules))
	for i, id := range schedules {
		ids[i] = id
	}
	out := map[models.ID]string{}
	err := w.db.For(scope).Read(ctx, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, `SELECT id, name FROM schedules WHERE env = $1 AND id = ANY ($2::uuid[])`, env, ids)
		if err != nil {
			return err
		}
		var id [16]byte
		var name string
		_, err = pgx.ForEachRow(rows, []any{&id, &name}, func() error {
			out[id] = name
			return nil
		})
		return err
	})
	return out, peopleError(err)
}
