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

// Marks lists the watermarks of an environment by name, those after one.
func (r *Reads) Marks(ctx context.Context, scope Scope, env int32, after string, limit int) (list []models.Watermark, err error) {
	err = r.scoped(ctx, scope, func(tx pgx.Tx) error {
		list, err = readMarks(ctx, tx, fmt.Sprintf(`env = $1 AND name > $2 ORDER BY name LIMIT %d`, limit), env, after)
		return err
	})
	return list, err
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
