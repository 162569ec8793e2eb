package engine_test

import (
	"encoding/json"
	"runtime"
	"slices"
	"testing"
	"time"

	"nightshift/models"
	"nightshift/scheduler/engine"
)

// gather lets n numbered messages come, a thousand a command.
func (w *world) gather(source models.Source, name string, n int) {
	w.t.Helper()
	for from := 0; from < n; from += 1000 {
		cmd := &engine.Command{ID: w.id(), Publish: &engine.Publish{Env: w.env, Source: source, Name: name}}
		for i := from; i < min(from+1000, n); i++ {
			text, err := json.Marshal(i)
			w.must(err)
			cmd.Publish.Messages = append(cmd.Publish.Messages, engine.NewMessage{ID: w.id(), Data: text})
		}
		w.do(cmd)
	}
}

// rebuilt says what a rebuild of the board allocates, and how much of it stays.
func (w *world) rebuilt(cfg engine.Config) (allocated, stays int64) {
	w.t.Helper()
	heads, most := w.engine.Limits()
	var before, after, settled runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	snapshot, err := w.store.Load(w.ctx, heads, most)
	w.must(err)
	fresh := engine.New(cfg)
	fresh.Rebuild(snapshot)
	runtime.ReadMemStats(&after)
	snapshot = nil
	runtime.GC()
	runtime.ReadMemStats(&settled)
	runtime.KeepAlive(fresh)
	return int64(after.TotalAlloc - before.TotalAlloc), int64(settled.HeapAlloc) - int64(before.HeapAlloc)
}

// A hundred thousand triggers wait for a schedule, and as many items in a queue: a rebuild counts them and loads none, and
// they go, each once and in order, in batches of which none reads or takes more than a run's worth
// of each.
func TestARebuildCountsWhatWaits(t *testing.T) {
	const n, perRun = 20_000, 1000
	w := newWorld(t, engine.Config{})
	listener := w.listener("on a sale", func(r *models.ScheduleRule) { r.Event.MaxEvents = perRun })
	drain := w.drainer("mailer", func(r *models.ScheduleRule) {
		r.Drain = &models.DrainRule{Queue: "mail", MaxItems: perRun, BatchSize: 100}
	})
	both := []models.TaskRef{listener, drain}
	for _, of := range both {
		w.turnSchedule(of, false)
	}
	w.gather(models.FromTrigger, "sale", 10)
	w.gather(models.FromQueue, "mail", 10)
	few, fewStay := w.rebuilt(engine.Config{})
	w.gather(models.FromTrigger, "sale", n)
	w.gather(models.FromQueue, "mail", n)
	began := time.Now()
	many, manyStay := w.rebuilt(engine.Config{})
	t.Logf("a rebuild with 20 messages waiting allocates %d kB and keeps %d kB, with %d %d kB and %d kB, in %s",
		few>>10, fewStay>>10, 2*n, many>>10, manyStay>>10, time.Since(began).Round(time.Millisecond))
	if most := int64(2 * n * 4); many > few+most || manyStay > fewStay+most { // four bytes a message: less than its number alone has
		t.Errorf("with %d messages waiting a rebuild allocates %d bytes and keeps %d, with 20 %d and %d", 2*n, many, manyStay, few, fewStay)
	}
	w.rebuild() // the brain that died is followed by one that knows the counts alone
	for _, of := range both {
		w.turnSchedule(of, true)
	}
	batches, largest := 0, [2]int32{}
	w.asks = func(need *models.Need) {
		for _, f := range need.Feeds {
			if f.Most > perRun+1 {
				t.Errorf("a batch reads %d messages of %s", f.Most, f.Name)
			}
		}
		if len(need.Feeds) > len(both) {
			t.Errorf("a batch reads %d feeds", len(need.Feeds))
		}
	}
	w.saw = func(p *models.Plan) {
		var took [2]int32
		for _, take := range p.Feeds.Takes {
			took[take.Source] += take.Count
		}
		if took[0]+took[1] > 0 {
			batches++
		}
		largest[0], largest[1] = max(largest[0], took[0]), max(largest[1], took[1])
	}
	want := slices.Concat(upTo(10), upTo(n))
	runs := func(of models.TaskRef) (n int) {
		for _, r := range w.store.Runs(of) {
			if r.Outcome == "dispatched" {
				n++
			}
		}
		return n
	}
	for seconds := 0; seconds < 30; seconds++ {
		w.advance(time.Second)
	}
	for i, of := range both {
		if got := w.taken(of); !slices.Equal(got, want) {
			t.Errorf("of %d messages %d were taken, or out of order", len(want), len(got))
		}
		if largest[i] > perRun {
			t.Errorf("one batch took %d messages of source %d", largest[i], i)
		}
	}
	t.Logf("%d triggers went in %d runs, as many items in %d, over %d batches; the largest took %d and %d", len(want), runs(listener), runs(drain), batches, largest[0], largest[1])
}
