package postgres_test

import (
	"sync"
	"testing"

	"nightshift/models"
)

// What was spent of a budget keeps its sum while its rows become one a period, whoever folds them at once; the last batches'
// rows stay as they are.
func TestRetainFoldsWhatWasSpent(t *testing.T) {
	w := newWorld(t)
	busy, quiet := newID(w.now), newID(w.now+1)
	w.apply(&models.Plan{Money: models.MoneyPlan{Budgets: []models.Budget{
		{ID: busy, Tenant: 1, Scope: models.TypeScope, Name: "a", Timezone: "UTC"}, {ID: quiet, Tenant: 1, Scope: models.TypeScope, Name: "b", Timezone: "UTC"},
	}}})
	exec(t, w.db, `INSERT INTO batches (cell, batch, epoch, at) SELECT 1, n, 1, $1 FROM generate_series(100000, 104500) n`, int64(w.now))
	exec(t, w.db, `INSERT INTO budget_spends (budget, since, batch, tenant, cost_micro, tokens)
		SELECT $1, since, n, 1, 3, 1 FROM generate_series(100001, 104500) n, unnest(ARRAY[0, 86400000000]) since WHERE since = 0 OR n % 2 = 0`, [16]byte(busy))
	exec(t, w.db, `INSERT INTO budget_spends (budget, since, batch, tenant, cost_micro, tokens) VALUES ($1, 0, 100500, 1, 7, 0)`, [16]byte(quiet))
	sums := `SELECT array_agg(s ORDER BY s) FROM (SELECT concat(budget, ' ', since, ' ', sum(cost_micro), ' ', sum(tokens)) AS s FROM budget_spends GROUP BY budget, since) x`
	before := one[[]string](t, w.db, sums)
	var both sync.WaitGroup
	for range 2 {
		both.Go(func() {
			if _, err := w.db.Retain(t.Context(), w.now); err != nil {
				t.Error(err)
			}
		})
	}
	both.Wait()
	after := one[[]string](t, w.db, sums)
	for i := range before {
		if before[i] != after[i] {
			t.Errorf("%s became %s", before[i], after[i])
		}
	}
	// The first row of each period, and the last 1,001 batches.
	if n := one[int](t, w.db, `SELECT count(*) FROM budget_spends`); n != 1+1001+1+501+1 {
		t.Errorf("%d rows are left", n)
	}
	if gone := w.retain(w.now); len(gone) > 0 {
		t.Errorf("more went: %v", gone)
	}
}

// A sum that is larger than any number ends at the largest: whoever reports nonsense keeps no brain from beginning.
func TestASumThatIsTooLargeIsTheLargest(t *testing.T) {
	w := newWorld(t)
	id := newID(w.now)
	w.apply(&models.Plan{Money: models.MoneyPlan{Budgets: []models.Budget{{ID: id, Tenant: 1, Timezone: "UTC"}}}})
	exec(t, w.db, `INSERT INTO budget_spends (budget, since, batch, tenant, cost_micro, tokens)
		SELECT $1, 0, n, 1, 2305843009213693952, 2305843009213693952 FROM generate_series(1, 3) n`, [16]byte(id))
	most := models.Amount{Micro: models.MostAmount, Tokens: models.MostAmount}
	for range 2 {
		s, err := w.store.Load(t.Context(), 4, 1000)
		if err != nil {
			t.Fatal(err)
		}
		if got := s.Budgets[0].Spent; len(got) != 1 || got[0].Amount != most {
			t.Errorf("spent: %+v", got)
		}
		exec(t, w.db, `INSERT INTO batches (cell, batch, epoch, at) VALUES (1, 100000, 1, 0) ON CONFLICT DO NOTHING`)
		if _, err := w.db.Retain(t.Context(), w.now); err != nil {
			t.Fatal(err)
		}
	}
	if n := one[int](t, w.db, `SELECT count(*) FROM budget_spends`); n != 1 {
		t.Errorf("%d rows are left", n)
	}
}
