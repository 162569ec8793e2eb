package figures

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"nightshift/models"
	"nightshift/scheduler/forecast"
	"nightshift/scheduler/sim/trace"
)

const (
	timerTrace = "azure_functions2019_500fn_invocations"
	minute     = models.Instant(time.Minute / time.Microsecond)
)

// timers has the recorded timers of a cloud apply what the forecast suggests, until it suggests nothing more.
func timers(l *lab) []Figure {
	goals := []struct {
		reach       int
		goal, fails float64
	}{{2, 1.45, 2.1}, {5, 1.2, 2.1}}
	t, there := l.read(timerTrace)
	var out []Figure
	for _, g := range goals {
		name := fmt.Sprintf("recorded timers: peak ÷ mean, moved as suggested within ± %d min", g.reach)
		if !there {
			out = append(out, skipped(name))
			continue
		}
		loads, span := regular(&t, g.reach)
		before, after, moves := settled(loads, span)
		out = append(out, Figure{
			Name: name, Value: after, Goal: g.goal, Fails: g.fails, Format: "%.3f",
			Note: fmt.Sprintf("%.2f as scheduled; %d timers, %d suggestions applied", before, len(loads), moves),
		})
	}
	return out
}

// regular are the timers most of whose calls come two minutes or more after the one before, as schedules that may be moved by
// so many minutes either way.
func regular(t *trace.Trace, reach int) (loads []*forecast.Load, span models.Instant) {
	calls := map[string]map[int]int32{}
	last := 0
	for _, task := range t.Tasks {
		if calls[task.Class.Type] == nil {
			calls[task.Class.Type] = map[int]int32{}
		}
		at := int(task.At / time.Minute)
		calls[task.Class.Type][at]++
		last = max(last, at)
	}
	for i, name := range slices.Sorted(maps.Keys(calls)) {
		minutes := slices.Sorted(maps.Keys(calls[name]))
		distances := map[int]int{}
		for k := 1; k < len(minutes); k++ {
			distances[minutes[k]-minutes[k-1]]++
		}
		common := 0
		for d, n := range distances { // any order: the most, then the shortest
			if n > distances[common] || n == distances[common] && d < common {
				common = d
			}
		}
		if common < 2 {
			continue
		}
		load := &forecast.Load{
			Of: forecast.Of{Pool: "timers", Kind: models.Batch}, Schedule: models.ID{byte(i >> 8), byte(i)},
			Tasks: forecast.Exactly(1), Seconds: forecast.Exactly(1), Reach: reach,
		}
		for _, m := range minutes {
			load.Fires = append(load.Fires, forecast.Fire{At: day + models.Instant(m)*minute, Runs: 1})
		}
		loads = append(loads, load)
	}
	return loads, models.Instant(last+1) * minute
}

// day is when the recorded timers begin: any moment.
const day = 20_000 * 24 * 60 * minute

// settled applies the suggestion for the highest peak that has one, as long as there is any, each schedule within its reach of
// where it was.
func settled(loads []*forecast.Load, span models.Instant) (before, after float64, moves int) {
	loads = slices.Clone(loads)
	moved := map[models.ID]int{}
	for i, l := range loads {
		one := *l
		one.May = func(minutes int) bool {
			at := moved[one.Schedule] + minutes
			return -l.Reach <= at && at <= l.Reach
		}
		loads[i] = &one
	}
	for first := true; ; first = false {
		scene := forecast.NewScene(day, span, loads, nil, nil)
		peak, mean := scene.Peak("timers")
		if after = peak / mean; first {
			before = after
		}
		best := highest(scene.Collisions(8))
		if best == nil {
			best = highest(scene.Collisions(1 << 20))
		}
		if best == nil {
			return before, after, moves
		}
		i := slices.IndexFunc(loads, func(l *forecast.Load) bool { return l.Schedule == best.Schedule })
		loads[i] = loads[i].Shift(best.Minutes)
		moved[best.Schedule] += best.Minutes
		moves++
	}
}

// highest is the move for the highest collision that has one.
func highest(list []forecast.Collision) (best *forecast.Move) {
	peak := 0.0
	for _, c := range list {
		if c.Move != nil && c.Peak > peak {
			best, peak = c.Move, c.Peak
		}
	}
	return best
}
