package postgres_test

import (
	"maps"
	"testing"

	"nightshift/models"
)

func TestRetainForgetsTheOldAlone(t *testing.T) {
	w := newWorld(t)
	recent := w.now
	for _, at := range []models.Instant{recent.Add(-models.Seconds(8 * 24 * 3600)), recent} {
		w.now = at
		w.apply(&models.Plan{Done: []models.ID{newID(at)}, Events: []models.Event{{Env: env, Name: "lane.paused", At: at}}})
	}
	exec(t, w.db, `UPDATE batches SET at = 1 WHERE batch = 1`) // the world's own
	gone, err := w.db.Retain(t.Context(), recent)
	if err != nil || !maps.Equal(gone, map[string]int64{"done": 1, "events": 1, "sessions": 0}) {
		t.Errorf("gone: %v, %v", gone, err)
	}
	if n := one[int](t, w.db, `SELECT count(*) FROM batches`); n != 1 {
		t.Errorf("%d batches are left", n)
	}
	w.apply(&models.Plan{Tasks: []models.Task{w.ready()}})
}
