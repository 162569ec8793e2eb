package engine_test

import (
	"testing"
	"time"

	"nightshift/models"
	"nightshift/models/storetest"
	"nightshift/scheduler/engine"
)

// What is due as somebody edits, pauses or resumes a schedule has its row all the same, and follows what stood before.
func TestAnEditInTheMomentOfAnOccurrenceTakesItNotAway(t *testing.T) {
	for name, c := range map[string]struct {
		act  func(w *world, row models.Schedule)
		want string
		next time.Duration // until the occurrence after it
	}{
		"words": {func(w *world, row models.Schedule) {
			row.Rule.Description = "another"
			w.do(&engine.Command{Configure: &engine.Configure{Schedule: &row, Version: 1}})
		}, "dispatched/ready", 9 * time.Second},
		"rule": {func(w *world, row models.Schedule) {
			row.Rule.EverySeconds = 60
			w.do(&engine.Command{Configure: &engine.Configure{Schedule: &row, Version: 1}})
		}, "dispatched/ready", 49 * time.Second},
		"pause":  {func(w *world, row models.Schedule) { w.turnSchedule(models.TaskRef{Env: row.Env, ID: row.ID}, false) }, "skipped_paused", 9 * time.Second},
		"resume": {func(w *world, row models.Schedule) { w.turnSchedule(models.TaskRef{Env: row.Env, ID: row.ID}, true) }, "skipped_paused", 9 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			w := worldOn(t, engine.Config{}, storetest.Lone)
			var row models.Schedule
			of := w.schedule("s", func(s *models.Schedule) {
				s.Rule.Overlap = "allow"
				row = *s
			})
			if name == "resume" {
				w.turnSchedule(of, false)
			}
			w.now = w.now.Add(11 * time.Second) // the brain was busy for a second
			c.act(w, row)
			w.outcomesAre(of, c.want)
			if name == "pause" {
				w.turnSchedule(of, true)
			}
			w.advance(c.next)
			w.outcomesAre(of, c.want+" dispatched/ready")
		})
	}
}
