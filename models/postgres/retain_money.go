package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// unsettled is how many of the last batches' spending stays as it was written: a brain may be reading it.
const unsettled = 1000

// foldSpends adds what older batches spent of a budget in a period to the first row of that period, a slice a time. What is
// added is what was deleted, so that two replicas that fold at once count nothing twice.
const foldSpends = `WITH edge AS (SELECT max(batch) - $1::bigint AS batch FROM batches WHERE cell = 1), old AS MATERIALIZED (
		SELECT s.budget, s.since, s.batch, s.kept FROM budgets b CROSS JOIN edge CROSS JOIN LATERAL (
			SELECT l.budget, l.since, l.batch, first.batch AS kept FROM budget_spends l CROSS JOIN LATERAL (
				SELECT f.batch FROM budget_spends f WHERE f.budget = l.budget AND f.since = l.since ORDER BY f.budget, f.since, f.batch LIMIT 1
			) first
			WHERE l.budget = b.id AND l.batch < edge.batch AND l.batch > first.batch LIMIT $2
		) s LIMIT $2
	), gone AS (
		DELETE FROM budget_spends s USING old WHERE s.budget = old.budget AND s.since = old.since AND s.batch = old.batch
		RETURNING s.budget, s.since, old.kept, s.cost_micro, s.tokens
	), folded AS (
		UPDATE budget_spends k SET cost_micro = least(k.cost_micro + m.cost_micro, 2305843009213693952), tokens = least(k.tokens + m.tokens, 2305843009213693952)
		FROM (SELECT budget, since, kept, sum(cost_micro) AS cost_micro, sum(tokens) AS tokens FROM gone GROUP BY budget, since, kept) m
		WHERE k.budget = m.budget AND k.since = m.since AND k.batch = m.kept
	)
	SELECT count(*) FROM gone`

// retainSpends keeps one row a budget and period of what was spent some time ago.
func (db *DB) retainSpends(ctx context.Context, gone map[string]int64) error {
	for range retainSlices {
		var n int64
		err := db.sweep(ctx, func(tx pgx.Tx) error {
			return tx.QueryRow(ctx, foldSpends, int64(unsettled), retainSlice).Scan(&n)
		})
		gone["budget_spends"] += n
		if err != nil || n < retainSlice {
			return err
		}
	}
	return nil
}
