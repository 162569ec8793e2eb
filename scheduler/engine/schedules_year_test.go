package engine_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"nightshift/models"
	"nightshift/models/storetest"
	"nightshift/scheduler/calendar"
	"nightshift/scheduler/engine"
)

var year = flag.Bool("year", false, "live through a year with 500 schedules, not a sample of it")

var twelveZones = []string{
	"UTC", "Europe/Berlin", "America/New_York", "America/Sao_Paulo", "Africa/Lusaka", "Africa/Cairo", "Asia/Kolkata", "Asia/Tokyo",
	"Australia/Lord_Howe", "Pacific/Auckland", "America/St_Johns", "Pacific/Chatham",
}

// fleet makes schedules of many sorts in twelve zones.
func (w *world) fleet(n int) map[models.TaskRef]models.Schedule {
	made := map[models.TaskRef]models.Schedule{}
	for i := range n {
		rule := models.ScheduleRule{
			Kind: "cron", Timezone: twelveZones[i%12], Gap: []string{"shift", "skip"}[i/12%2], Fold: []string{"first", "second", "both"}[i/24%3],
			GraceSeconds: 60, CatchUp: 100, Misfire: []string{"skip", "run_once", "catch_up"}[i%3],
			Overlap: []string{"skip", "queue_one", "allow", "cancel_previous"}[i%4], ExpireSeconds: 1200,
		}
		switch i % 25 {
		case 0:
			rule.Expression = fmt.Sprintf("%d * * * *", i%60)
		case 1:
			rule.Expression = fmt.Sprintf("%d 9-17 * * MON-FRI", i%60)
		case 2:
			rule.Expression, rule.Exclude = "15 0 L * *", []string{"2027-03-31"}
		default:
			rule.Expression = fmt.Sprintf("%d %d * * *", i%60, i/25%4)
		}
		var row models.Schedule
		ref := w.schedule(fmt.Sprint(i), func(s *models.Schedule) {
			s.Rule = rule
			row = *s
		})
		made[ref] = row
	}
	return made
}

// Every target of a year is met within two seconds, or skipped with a cause, and there is none beside them, while brains
// die before and after their commits and stay away for a while.
func TestAYearOfSchedulesWithBrainsThatDie(t *testing.T) {
	n, days := 60, 45
	if *year {
		n, days = 500, 365
	}
	w := worldOn(t, engine.Config{}, storetest.Lone)
	w.now = models.InstantOf(time.Date(2027, 3, 1, 0, 0, 0, 0, time.UTC))
	w.rebuild()
	rng := rand.New(rand.NewPCG(1, 8))
	fleet := w.fleet(n)
	began, end := w.now, w.now.Add(time.Duration(days)*24*time.Hour)
	moments, targets := map[models.Instant]bool{}, map[models.TaskRef]map[models.Instant]bool{}
	for ref, s := range fleet { // any order: each on its own
		table, err := calendar.Of(&s.Rule, began)
		w.must(err)
		targets[ref] = map[models.Instant]bool{}
		list, _ := table.Between(began.Time(), end.Time(), 1_000_000)
		for _, o := range list {
			at := models.InstantOf(o.At)
			moments[at], targets[ref][at] = true, true
		}
	}
	var away models.Instant // until when there was no brain
	kills := 0
	absent := map[models.Instant]bool{}
	for _, at := range slices.Sorted(maps.Keys(moments)) {
		if at <= away {
			absent[at] = true
			continue
		}
		w.now = max(w.now, at.Add(time.Duration(rng.IntN(900))*time.Millisecond))
		switch rng.IntN(200) {
		case 0:
			kills++
			w.crash(models.Rollback, false)
		case 1:
			kills++
			w.crash(models.Unclear, true)
		case 2:
			kills++
			w.takeOver()
		case 3:
			kills++
			absent[at] = true
			away = w.now.Add(time.Duration(rng.IntN(5400)) * time.Second)
			w.now = away
			w.takeOver()
		}
		for w.once([]*engine.Command{{Tick: &engine.Tick{}}}); w.engine.Busy(); {
			w.once(nil)
		}
	}
	w.now = max(w.now, end)
	w.turn(&engine.Command{Tick: &engine.Tick{}})
	rows := 0
	for ref, want := range targets { // any order: each on its own
		got := w.store.Runs(ref)
		rows += len(got)
		for _, r := range got {
			if !want[r.ScheduledFor] {
				t.Fatalf("%+v is none of the targets, or there twice: %+v", r, fleet[ref].Rule)
			}
			delete(want, r.ScheduledFor)
			ran := !r.Task.IsZero()
			if !ran && r.Cause == "" || ran && r.LateMS > 2000 && !absent[r.ScheduledFor] && fleet[ref].Rule.Overlap != "queue_one" {
				t.Fatalf("%+v: %+v", r, fleet[ref].Rule)
			}
		}
		if len(want) > 0 {
			t.Fatalf("%d targets of %+v were lost", len(want), fleet[ref].Rule)
		}
	}
	t.Logf("%d schedules, %d days: %d occurrences, %d brains died", n, days, rows, kills)
}

func (w *world) takeOver() {
	w.t.Helper()
	brain, err := w.store.Brain(w.ctx)
	w.must(err)
	w.epoch, err = w.store.TakeOver(w.ctx, brain, "there")
	w.must(err)
	w.engine = engine.New(engine.Config{Seed: [32]byte{byte(w.epoch), byte(w.epoch >> 8)}})
	w.rebuild()
}

// BenchmarkSchedulesDue is a tick in which a hundred schedules are due, among so many.
func BenchmarkSchedulesDue(b *testing.B) {
	for _, n := range []int{1_000, 100_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			w := worldOn(&testing.T{}, engine.Config{}, storetest.Lone)
			var cmds []*engine.Command
			for i := range n {
				every := int64(60)
				if i >= 100 {
					every = 365 * 86_400
				}
				row := models.Schedule{Env: w.env, ID: w.id(), Name: fmt.Sprint(i), Work: models.ScheduleWork{Task: json.RawMessage(`{"class":{"type":"work"},"max_attempts":1,"input":{}}`)}, Rule: models.ScheduleRule{Kind: "interval", EverySeconds: every, GraceSeconds: 60, Overlap: "allow"}}
				if cmds = append(cmds, &engine.Command{Configure: &engine.Configure{Schedule: &row, New: true}}); len(cmds) == 5_000 || i == n-1 {
					w.once(cmds)
					cmds = nil
				}
			}
			b.ResetTimer()
			for range b.N {
				w.now = w.now.Add(time.Minute)
				for w.once([]*engine.Command{{Tick: &engine.Tick{}}}); w.engine.Busy(); {
					w.once(nil)
				}
			}
		})
	}
}
