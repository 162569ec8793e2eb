package postgres

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/jackc/pgx/v5"

	"nightshift/models"
)

// MarkOf is a watermark for whoever holds a lease of a task that names it; false when nobody has set it.
func (r *Reads) MarkOf(ctx context.Context, env int32, name string) (m models.Watermark, set bool, err error) {
	err = r.db.Platform().Read(ctx, func(tx pgx.Tx) error {
		list, err := readMarks(ctx, tx, `env = $1 AND name = $2`, env, name)
		if len(list) == 1 {
			m, set = list[0], true
		}
		return err
	})
	return m, set, peopleError(err)
}

// Marks lists the watermarks of an environment by name, those after one, and says how many there are in all. In descending
// order they are those before it.
func (r *Reads) Marks(ctx context.Context, scope Scope, env int32, after string, desc bool, limit int) (list []models.Watermark, all int64, err error) {
	err = r.scoped(ctx, scope, func(tx pgx.Tx) error {
		if err := tx.QueryRow(ctx, `SELECT count(*) FROM watermarks WHERE env = $1`, env).Scan(&all); err != nil {
			return err
		}
		list, err = readMarks(ctx, tx, fmt.Sprintf(`env = $1 AND %s LIMIT %d`, beyond("name", after, desc), limit), env, after)
		return err
	})
	return list, all, err
}

// beyond is the part of a list by name that begins after $2, or in descending order before it; an empty one begins it.
func beyond(column, after string, desc bool) string {
	switch {
	case !desc:
		return column + ` > $2 ORDER BY ` + column
	case after == "":
		return column + ` >= $2 ORDER BY ` + column + ` DESC`
	default:
		return column + ` < $2 ORDER BY ` + column + ` DESC`
	}
}

// Mark is one watermark; not_found when nobody has set it.
func (r *Reads) Mark(ctx context.Context, scope Scope, env int32, name string) (m models.Watermark, err error) {
	err = r.scoped(ctx, scope, func(tx pgx.Tx) error {
		list, err := readMarks(ctx, tx, `env = $1 AND name = $2`, env, name)
		switch {
		case err != nil:
			return err
		case len(list) == 0:
			return models.Errorf(models.NotFound, "there is no watermark %q", name)
		}
		m = list[0]
		return nil
	})
	return m, err
}

func readMarks(ctx context.Context, tx pgx.Tx, where string, args ...any) ([]models.Watermark, error) {
	rows, err := tx.Query(ctx, `SELECT env, name, value, version, at FROM watermarks WHERE `+where, args...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (m models.Watermark, err error) {
		var value string
		err = row.Scan(&m.Env, &m.Name, &value, &m.Version, atTo(&m.At))
		m.Value = json.RawMessage(value)
		return m, err
	})
}
