package postgres_test

import (
	"maps"
	"slices"
	"testing"

	"nightshift/models"
)

// What passed under a rate is summed up by its slices, old rows go but for the newest, and a limit goes with all its rows.
func TestRatesAddUpAndAreForgotten(t *testing.T) {
	w := newWorld(t)
	limit := models.RateLimit{Env: env, Key: "bank", Limit: 5, PerSeconds: 256, Version: 1}
	pass := func(second int, n, credit int64) {
		at := w.now.Add(models.Seconds(second))
		w.apply(&models.Plan{RatePasses: []models.RatePass{{Env: env, Key: "bank", At: at, N: n, Credit: credit}}})
	}
	w.now -= w.now % 1_000_000 // a slice is a second
	w.apply(&models.Plan{Rates: []models.RateLimit{limit, {Env: env, Key: "idle", Limit: 1, PerSeconds: 1, Version: 1}}})
	for _, second := range []int{0, 100, 100, 300} {
		pass(second, 1, int64(second))
	}
	pass(301, 2, 7)
	at := func(second int) models.Instant { return w.now.Add(models.Seconds(second)) }
	rates := w.load(4, 100).Rates
	if len(rates) != 2 || rates[0].RateLimit != limit || rates[0].Credit != 7 || rates[0].At != at(301) || rates[1].At != 0 ||
		!slices.Equal(rates[0].Passes, []models.RateSum{{At: at(100), N: 2}, {At: at(300), N: 1}, {At: at(301), N: 2}}) {
		t.Errorf("rates are %+v", rates)
	}
	if gone := w.retain(at(1_000)); !maps.Equal(gone, map[string]int64{"rate_passes": 4}) {
		t.Errorf("gone: %v", gone)
	}
	if rates = w.load(4, 100).Rates; rates[0].Credit != 7 || len(rates[0].Passes) != 1 {
		t.Errorf("the newest is gone: %+v", rates)
	}
	w.apply(&models.Plan{RatesGone: []models.RateRef{{Env: env, Key: "bank"}}})
	if n := one[int](t, w.db, `SELECT count(*) FROM rate_passes`); n != 0 || len(w.load(4, 100).Rates) != 1 {
		t.Errorf("%d rows of a deleted limit are left", n)
	}
}
