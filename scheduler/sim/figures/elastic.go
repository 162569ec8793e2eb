package figures

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"nightshift/models"
	"nightshift/scheduler/sim"
)

const (
	dayHours  = 24
	daySlots  = 100
	dayBucket = 5 * time.Minute
)

// demandAt is how many slots people need at a time of a day: twelve in the quiet hours, and two peaks that come within
// minutes.
func demandAt(at time.Duration) float64 {
	rise := func(from, until time.Duration, most float64) float64 {
		const ramp = 10 * time.Minute
		switch {
		case at < from || at > until+ramp:
			return 0
		case at < from+ramp:
			return most * float64(at-from) / float64(ramp)
		case at > until:
			return most * float64(until+ramp-at) / float64(ramp)
		}
		return most
	}
	return 12 + rise(9*time.Hour, 11*time.Hour, 50) + rise(15*time.Hour, 17*time.Hour, 40)
}

// peopleOf draws the tasks of some days for which somebody waits, two minutes long in the mean.
func peopleOf(days int, rng *rand.Rand) (items []sim.Item) {
	const run = 2 * time.Minute
	for at := time.Duration(0); at < time.Duration(days)*dayHours*time.Hour; {
		at += time.Duration(rng.ExpFloat64()*float64(run)/demandAt(at%(dayHours*time.Hour))).Truncate(time.Millisecond) + time.Millisecond
		items = append(items, sim.Item{At: at, Run: time.Duration((0.5 + rng.Float64()) * float64(run)).Truncate(time.Millisecond)})
	}
	return items
}

// profile is how many slots such tasks need in the mean of each bucket of a day, were there always enough.
func profile(items []sim.Item) []float64 {
	out := make([]float64, int(dayHours*time.Hour/dayBucket))
	for _, item := range items {
		for at := item.At; at < item.At+item.Run; {
			b := int(at / dayBucket)
			if b >= len(out) {
				break
			}
			end := min(item.At+item.Run, time.Duration(b+1)*dayBucket)
			out[b] += float64(end-at) / float64(dayBucket)
			at = end
		}
	}
	return out
}

// yielding is days on a hundred slots in which people's work has peaks and heavy work would take every slot.
type yielding struct {
	days   int
	people []sim.Item
	before []float64 // the profile of the day before the first
	heavy  sim.Arrival
}

func yields(days int, heavy sim.Arrival) *yielding {
	heavy.Tenant, heavy.Lane, heavy.Class, heavy.At = "heavy", "batch", work("x.train"), 10*time.Minute
	return &yielding{
		days: days, people: peopleOf(days, rand.New(rand.NewPCG(41, 2))), before: profile(peopleOf(1, rand.New(rand.NewPCG(41, 1)))), heavy: heavy,
	}
}

// live lives through them, with or without holds, with or without what the day before says of each.
func (y *yielding) live(l *lab, elastic, foreseen bool) sim.Yield {
	s := sim.Scenario{
		Seed: 41, Until: time.Duration(y.days) * dayHours * time.Hour, Pace: 5 * time.Second,
		Tenants:  []sim.Tenant{{Name: "people", Weight: 1}, {Name: "heavy", Weight: 1}},
		Workers:  []sim.Worker{{Name: "w", Count: 10, Worker: slots(daySlots / 10)}},
		Arrivals: []sim.Arrival{{Tenant: "people", Lane: "io", Class: work("x.answer"), Items: y.people}, y.heavy},
	}
	dawn := models.Instant(0)
	if foreseen {
		s.Peak = func(_ string, _ []models.KindName, from, until models.Instant) (peak float64) {
			if dawn == 0 {
				dawn = from
			}
			first := int(from.Sub(dawn) / dayBucket)
			for b := first; b <= min(int(until.Sub(dawn)/dayBucket), first+len(y.before)); b++ {
				peak = max(peak, y.before[b%len(y.before)])
			}
			return peak
		}
	}
	for _, k := range models.DefaultKinds() {
		k.Elastic = k.Elastic && elastic
		s.Kinds = append(s.Kinds, k)
	}
	return l.live(s).Yield
}

// ideal is what heavy work could have had beside what people's took.
func (y *yielding) ideal(none sim.Yield) float64 {
	return daySlots*float64(y.days)*dayHours*3600 - none.First
}

// fewer is how many percent of the overload a way of holding avoids.
func fewer(y, none sim.Yield) float64 { return 100 * (1 - y.Overload/none.Overload) }

func overloaded(y, none sim.Yield) string {
	return fmt.Sprintf("%.1f of %.1f core-hours of waiting; %d holds", y.Overload/3600, none.Overload/3600, y.Holds)
}

// elasticDay lives through a day with heavy work of 20 to 60 minutes: without holds, with holds by what is seen, and with what
// the day before says of this one.
func elasticDay(l *lab) []Figure {
	y := yields(1, sim.Arrival{Batch: 4_000, Run: 40 * time.Minute, Spread: 0.5, Estimated: true})
	none, reactive, forecast := y.live(l, false, false), y.live(l, true, false), y.live(l, true, true)
	ideal := y.ideal(none)
	return []Figure{
		{Name: "overload of what people wait for, holds with forecast: fewer", Value: fewer(forecast, none), Goal: 99, Fails: 95, Format: "%.2f %%", More: true, Note: overloaded(forecast, none)},
		{Name: "the same: heavy work done, of the ideal", Value: 100 * forecast.Other / ideal, Goal: 75, Fails: 60, Format: "%.1f %%", More: true, Note: fmt.Sprintf("%.1f %% without holds", 100*none.Other/ideal)},
		{Name: "overload, holds by what is seen alone: fewer", Value: fewer(reactive, none), Goal: 80, Fails: 50, Format: "%.2f %%", More: true, Note: overloaded(reactive, none) + fmt.Sprintf("; heavy work %.1f %%", 100*reactive.Other/ideal)},
	}
}

// elasticJobs is the same with recorded jobs as heavy work, three days long: minutes to days each, what is told of them wrong by a
// lognormal factor.
func elasticJobs(l *lab) (out []Figure) {
	const days, jobs = 3, 8_000
	for _, c := range []struct {
		name string
		goal float64 // the work that fits between the peaks of a day
	}{{"philly2017_jobs", 40}, {"msr_itp2021_jobs", 50}} {
		name := c.name
		title := fmt.Sprintf("overload beside jobs of %s, holds with forecast: fewer", strings.TrimSuffix(name, "_jobs"))
		t, ok := l.read(name)
		if !ok {
			out = append(out, skipped(title))
			continue
		}
		heavy := sim.Arrival{Exact: true, Wrong: 1, Hard: 90 * dayHours * time.Hour}
		for i := range min(jobs, len(t.Tasks)) {
			heavy.Items = append(heavy.Items, sim.Item{Run: t.Tasks[len(t.Tasks)/2+i].Run})
		}
		y := yields(days, heavy)
		none, reactive, forecast := y.live(l, false, false), y.live(l, true, false), y.live(l, true, true)
		ideal := y.ideal(none)
		out = append(out,
			Figure{Name: title, Value: fewer(forecast, none), Goal: 99, Fails: 95, Format: "%.2f %%", More: true, Note: overloaded(forecast, none) + fmt.Sprintf("; by what is seen alone %.2f %%", fewer(reactive, none))},
			Figure{Name: "the same: heavy work done, of the ideal (jobs of days included)", Value: 100 * forecast.Other / ideal, Goal: c.goal, Fails: 35, Format: "%.1f %%", More: true, Note: fmt.Sprintf("%.1f %% without holds", 100*none.Other/ideal)},
		)
	}
	return out
}
