package calendar

import (
	"strconv"
	"time"

	"nightshift/models"
)

// Windows are times in which something is open: each opens by a rule and lasts as long as it says.
type Windows struct{ list []window }

type window struct {
	rule *Rule
	last time.Duration
}

// Bounds of windows.
const (
	MostWindows     = 20
	LongestWindow   = 31 * 24 * time.Hour
	windowsTogether = 64 // steps by which windows that follow each other are taken for one
)

// ParseWindows reads windows. What it refuses it refuses naming its place, which begins with at.
func ParseWindows(at string, given []models.Window) (w Windows, err error) {
	if len(given) > MostWindows {
		return w, models.Invalid(at, "at most %d windows", MostWindows)
	}
	for i, g := range given {
		here := at + "[" + strconv.Itoa(i) + "]"
		last := time.Duration(g.DurationSeconds) * time.Second
		if last < time.Second || last > LongestWindow {
			return w, models.Invalid(here+".duration_seconds", "it must be from 1 to %d", int(LongestWindow.Seconds()))
		}
		rule, err := Parse(g.Cron, g.Timezone)
		if err != nil {
			return w, models.Invalid(here, "%v", err)
		}
		w.list = append(w.list, window{rule, last})
	}
	return w, nil
}

// Any says whether there are windows at all: without one it is always open.
func (w Windows) Any() bool { return len(w.list) > 0 }

// At says whether a window is open at a moment, and until when that stays so at least; the zero time where it always does.
func (w Windows) At(now time.Time) (open bool, until time.Time) {
	if !w.Any() {
		return true, time.Time{}
	}
	until = now
	for range windowsTogether {
		longer := until
		for _, one := range w.list {
			began, _, ok := one.rule.Prev(until.Add(1), Policy{})
			if end := began.Add(one.last); ok && end.After(longer) {
				longer = end
			}
		}
		if !longer.After(until) {
			break
		}
		until = longer
	}
	if until.After(now) {
		return true, until
	}
	until = time.Time{}
	for _, one := range w.list {
		if next, _, ok := one.rule.Next(now, Policy{}); ok && (until.IsZero() || next.Before(until)) {
			until = next
		}
	}
	return false, until
}
