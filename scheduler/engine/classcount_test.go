package engine_test

import (
	"testing"
	"time"

	"nightshift/models"
	"nightshift/models/storetest"
	"nightshift/scheduler/engine"
)

// However tasks wait, and whether their requirements were ever seen before, an environment has no more than two hundred of them
// waiting at once.
func TestClassesAreCountedHoweverTheyWait(t *testing.T) {
	for name, c := range map[string]struct {
		wait   func(*engine.NewTask)
		passes time.Duration // after which they are ready
	}{
		"ready":             {wait: func(*engine.NewTask) {}},
		"for a moment":      {wait: func(n *engine.NewTask) { n.DelaySeconds = 60 }, passes: 2 * time.Minute},
		"for an approval":   {wait: func(n *engine.NewTask) { n.NeedsApproval = true }},
		"for a key":         {wait: func(n *engine.NewTask) { n.LimitKey, n.KeyLimit = "one", 1 }},
		"for another task":  {wait: nil},
		"behind a shut one": {wait: func(n *engine.NewTask) { n.NeedsApproval, n.DelaySeconds = true, 60 }, passes: 2 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			w := worldOn(t, engine.Config{}, storetest.Lone)
			before := w.submit(w.task(func(n *engine.NewTask) { n.NeedsApproval = true }))[0]
			varied := func(from, n int) []engine.NewTask {
				var tasks []engine.NewTask
				for i := range n {
					tasks = append(tasks, w.task(func(n *engine.NewTask) {
						n.Class.CPUMilli = int64(1000 + from + i)
						if c.wait != nil {
							c.wait(n)
						} else {
							n.DependsOn = []engine.Dependency{{Task: before, On: models.OnSucceeded}}
						}
					}))
				}
				return tasks
			}
			body := func(from, n int) *engine.Command {
				return &engine.Command{Submit: &engine.Submit{Env: w.env, Tasks: varied(from, n), InBatch: true}}
			}
			var ids []models.ID
			for from := 0; from < 190; from += 10 { // so many are seen, and gone again
				ids = w.submit(varied(1000+from, 10)...)
				for _, id := range ids {
					w.do(&engine.Command{Cancel: &engine.Cancel{Env: w.env, Task: id}})
				}
			}
			w.submit(varied(0, 190)...)
			w.submit(varied(0, 190)...) // the same again are no more
			if name == "for a key" {
				w.claim(w.worker("one"), 1) // with whoever stands first for the key the others are parked
			}
			for range 2 {
				w.refuses(models.TooManyClasses, body(1000, 20))
				w.refuses(models.TooManyClasses, body(5000, 20))
				if dry := w.do(&engine.Command{Submit: &engine.Submit{Env: w.env, Tasks: varied(0, 1), Single: true, Dry: true}}).Submitted.Dry[0]; len(dry.Refusals) != 0 {
					t.Errorf("one of those that wait is refused: %v", dry.Refusals)
				}
				if w.advance(c.passes); c.passes > 0 {
					w.rebuild()
				}
			}
			w.submit(varied(1000, 8)...)
		})
	}
}
