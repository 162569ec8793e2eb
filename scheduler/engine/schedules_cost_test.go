//go:build unix

package engine_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"
	"syscall"
	"testing"
	"time"

	"nightshift/models"
	"nightshift/models/storetest"
	"nightshift/scheduler/engine"
	"nightshift/scheduler/forecast"
)

var ticks = flag.Bool("ticks", false, "print what a tick costs among 1,000 and among 100,000 schedules")

// crowd is a world of so many schedules, of which a hundred are due each minute.
func crowd(t *testing.T, n int) *world {
	w := newWorld(t, engine.Config{})
	var cmds []*engine.Command
	for i := range n {
		rule := models.ScheduleRule{Kind: "interval", EverySeconds: 365 * 86_400, GraceSeconds: 60, Overlap: "allow"}
		if i < 100 {
			rule.EverySeconds = 60
		}
		row := models.Schedule{Env: w.env, ID: w.id(), Name: fmt.Sprint(i), Work: models.ScheduleWork{Task: json.RawMessage(`{"class":{"type":"work"},"max_attempts":1,"input":{}}`)}, Rule: rule}
		if cmds = append(cmds, &engine.Command{Configure: &engine.Configure{Schedule: &row, New: true}}); len(cmds) == 5_000 || i == n-1 {
			w.once(cmds)
			cmds = nil
		}
	}
	return w
}

func cpu() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// A tick costs by what is due, not by how many schedules there are: in processor time, alternating, by the median, without the
// collector, which can't tell one world from the other. What a sweep does once a second, however many ticks there are, is measured
// beside it; with many schedules that is a bounded part of looking a day ahead.
func TestATickCostsByWhatIsDue(t *testing.T) {
	if !*ticks {
		t.Skip("run with -ticks")
	}
	const (
		rounds = 31
		most   = 1.3
	)
	worlds := [2]*world{crowd(t, 1_000), crowd(t, 100_000)}
	var due, sweeps [2][]time.Duration
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	for range rounds {
		for i, w := range worlds {
			runtime.GC()
			var took [2]time.Duration
			for range 5 {
				for k, later := range []time.Duration{time.Minute - 500*time.Millisecond, 500 * time.Millisecond} {
					w.now = w.now.Add(later)
					began := cpu()
					for w.once([]*engine.Command{{Tick: &engine.Tick{}}}); w.engine.Busy(); {
						w.once(nil)
					}
					took[k] += (cpu() - began) / 5
				}
			}
			sweeps[i], due[i] = append(sweeps[i], took[0]), append(due[i], took[1])
		}
	}
	for i := range worlds {
		slices.Sort(due[i])
		slices.Sort(sweeps[i])
	}
	few, many := due[0][rounds/2], due[1][rounds/2]
	ratio := float64(many) / float64(few)
	fmt.Printf("a tick with 100 due: %v among 1,000 schedules, %v among 100,000: %.2f times (fails above %.1f)\n", few, many, ratio, most)
	fmt.Printf("a sweep, once a second: %v among 1,000 schedules, %v among 100,000 while a day is looked ahead\n", sweeps[0][rounds/2], sweeps[1][rounds/2])
	if ratio > most {
		t.Errorf("it costs %.2f times as much among a hundred times as many", ratio)
	}
}

// hourly is a world of so many schedules that run each hour, or more often.
func hourly(t *testing.T, n, each int) *world {
	w := worldOn(t, engine.Config{}, storetest.Lone)
	var cmds []*engine.Command
	for i := range n {
		rule := models.ScheduleRule{Kind: "cron", Expression: fmt.Sprintf("%d * * * *", i%60), GraceSeconds: 60, Overlap: "allow"}
		if each < 60 {
			rule.Expression = fmt.Sprintf("*/%d * * * *", each)
		}
		row := models.Schedule{Env: w.env, ID: w.id(), Name: fmt.Sprint(i), Work: models.ScheduleWork{Task: json.RawMessage(`{"class":{"type":"work"},"max_attempts":1,"input":{}}`)}, Rule: rule}
		if cmds = append(cmds, &engine.Command{Configure: &engine.Configure{Schedule: &row, New: true}}); len(cmds) == 5_000 || i == n-1 {
			w.once(cmds)
			cmds = nil
		}
	}
	return w
}

// However many schedules there are, a sweep looks up a bounded part of what they ask for, and the whole comes in the end.
func TestALookAheadIsMadeInSlices(t *testing.T) {
	w := hourly(t, 400, 10) // 60,000 moments
	looks := 0
	for ; w.engine.Foreseen() == nil; looks++ {
		if looks > 60 {
			t.Fatal("it never ends")
		}
		w.now = w.now.Add(time.Second)
		w.once([]*engine.Command{{Tick: &engine.Tick{}}})
	}
	if looks < 6 || looks > 10 {
		t.Errorf("60,000 moments were looked up in %d sweeps", looks)
	}
	if _, p90 := w.engine.Foreseen().Peak("cpu", forecast.Everything, w.now, w.now.Add(24*time.Hour)); p90 != 400 {
		t.Errorf("%.0f of 400 are foreseen to run at the same time", p90)
	}
}

// What a sweep costs while the day of 100,000 schedules is looked up, against one that has nothing to look up.
func TestWhatALookAheadCosts(t *testing.T) {
	if !*ticks {
		t.Skip("run with -ticks")
	}
	w := hourly(t, 100_000, 60)
	var with []time.Duration
	looks := 0
	for ; w.engine.Foreseen() == nil; looks++ {
		w.now = w.now.Add(time.Second)
		began := cpu()
		w.once([]*engine.Command{{Tick: &engine.Tick{}}})
		with = append(with, cpu()-began)
		if w.engine.Busy() { // what is due is another figure
			for w.engine.Busy() {
				w.once(nil)
			}
		}
	}
	slices.Sort(with)
	began := cpu()
	for range 1000 {
		w.engine.Foreseen().Peak("cpu", forecast.Everything, w.now, w.now.Add(time.Hour))
	}
	fmt.Printf("a day of 100,000 hourly schedules is looked ahead in %d sweeps, a second apart, of %v each (nine in ten within %v); to ask for the peak of an hour takes %v\n",
		looks, with[len(with)/2], with[len(with)*9/10], (cpu()-began)/1000)
}
