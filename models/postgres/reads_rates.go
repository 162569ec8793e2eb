package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"nightshift/models"
)

// RateLimits lists the rate limits of an environment by key, those after one, and counts them all. In descending order
// they are those before it.
func (r *Reads) RateLimits(ctx context.Context, scope Scope, env int32, after string, desc bool, limit int) (list []models.RateLimit, all int64, err error) {
	err = r.scoped(ctx, scope, func(tx pgx.Tx) error {
		if err := tx.QueryRow(ctx, `SELECT count(*) FROM rate_limits WHERE env = $1`, env).Scan(&all); err != nil {
			return err
		}
		list, err = readRates(ctx, tx, `env = $1 AND `+beyond("key", after, desc)+` LIMIT $3`, env, after, limit)
		return err
	})
	return list, all, err
}

// RateLimit is one rate limit; not_found when none is set.
func (r *Reads) RateLimit(ctx context.Context, scope Scope, env int32, key string) (l models.RateLimit, err error) {
	err = r.scoped(ctx, scope, func(tx pgx.Tx) error {
		list, err := readRates(ctx, tx, `env = $1 AND key = $2`, env, key)
		switch {
		case err != nil:
			return err
		case len(list) == 0:
			return models.Errorf(models.NotFound, "there is no rate limit %q", key)
		}
		l = list[0]
		return nil
	})
	return l, err
}

func readRates(ctx context.Context, tx pgx.Tx, where string, args ...any) ([]models.RateLimit, error) {
	rows, err := tx.Query(ctx, `SELECT env, key, most, per_seconds, burst, from_batch, created_at, updated_at, version FROM rate_limits WHERE `+where, args...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (l models.RateLimit, err error) {
		err = row.Scan(&l.Env, &l.Key, &l.Limit, &l.PerSeconds, &l.Burst, &l.FromBatch, atTo(&l.CreatedAt), atTo(&l.UpdatedAt), &l.Version)
		return l, err
	})
}
