package calendar

import (
	"slices"
	"time"

	"nightshift/models"
)

// mostDates is how many dates one timetable may leave out.
const mostDates = 1000

// Dates are days on the rule's own wall calendar.
type Dates struct{ numbers []int64 }

// ParseDates reads dates written 2026-12-25.
func ParseDates(texts []string) (Dates, error) {
	if len(texts) > mostDates {
		return Dates{}, models.Errorf(models.InvalidSchedule, "calendar_exclude has %d dates, %d are the most", len(texts), mostDates)
	}
	var d Dates
	for _, text := range texts {
		at, err := time.Parse(time.DateOnly, text)
		if err != nil {
			return Dates{}, models.Errorf(models.InvalidSchedule, "calendar_exclude %q is no date such as \"2026-12-25\"", shortened(text))
		}
		d.numbers = append(d.numbers, floor(at.Unix(), day))
	}
	slices.Sort(d.numbers)
	d.numbers = slices.Compact(d.numbers)
	return d, nil
}

func (d Dates) has(number int64) bool {
	_, found := slices.BinarySearch(d.numbers, number)
	return found
}

// Freeze is a time in which nothing fires: from its begin until just before its end.
type Freeze struct {
	Begin, End time.Time
	Reason     string
}

// Timetable is a rule with what limits it. An occurrence outside Start and End does not exist; one that is excluded does,
// and says why nothing runs.
type Timetable struct {
	Rule       *Rule
	Policy     Policy
	Start, End time.Time // both inclusive; zero is open
	Exclude    Dates
	Freezes    []Freeze
}

// Next is the first occurrence strictly after a moment, excluded or not.
func (t *Timetable) Next(after time.Time) (Occurrence, bool) {
	if !t.Start.IsZero() && after.Before(t.Start) {
		after = t.Start.Add(-1)
	}
	at, note, ok := t.Rule.Next(after, t.Policy)
	if !ok || !t.End.IsZero() && at.After(t.End) {
		return Occurrence{}, false
	}
	return Occurrence{At: at, Note: note, Excluded: t.excluded(at)}, true
}

// Prev is the last occurrence strictly before a moment, excluded or not.
func (t *Timetable) Prev(before time.Time) (Occurrence, bool) {
	if !t.End.IsZero() && before.After(t.End) {
		before = t.End.Add(1)
	}
	at, note, ok := t.Rule.Prev(before, t.Policy)
	if !ok || !t.Start.IsZero() && at.Before(t.Start) {
		return Occurrence{}, false
	}
	return Occurrence{At: at, Note: note, Excluded: t.excluded(at)}, true
}

// NextRun is the first occurrence after a moment that is not excluded. It passes over an excluded date or a freeze in one
// step, however many occurrences lie in it.
func (t *Timetable) NextRun(after time.Time) (Occurrence, bool) {
	for {
		o, ok := t.Next(after)
		if !ok || o.Excluded == "" {
			return o, ok
		}
		_, end := t.excludedSpan(o.At)
		after = end.Add(-1)
	}
}

// PrevRun is the last occurrence before a moment that is not excluded.
func (t *Timetable) PrevRun(before time.Time) (Occurrence, bool) {
	for {
		o, ok := t.Prev(before)
		if !ok || o.Excluded == "" {
			return o, ok
		}
		before, _ = t.excludedSpan(o.At)
	}
}

// Between lists the occurrences after one moment up to and including another, at most limit; more tells that others follow
// the last one.
func (t *Timetable) Between(from, to time.Time, limit int) (list []Occurrence, more bool) {
	for {
		o, ok := t.Next(from)
		if !ok || o.At.After(to) {
			return list, false
		}
		if len(list) >= limit {
			return list, true
		}
		list = append(list, o)
		from = o.At
	}
}

// Count is how many runs fall between two moments, and whether it stopped at most.
func (t *Timetable) Count(from, to time.Time, most int) (n int, more bool) {
	for {
		o, ok := t.NextRun(from)
		if !ok || o.At.After(to) {
			return n, false
		}
		if n >= most {
			return n, true
		}
		n++
		from = o.At
	}
}

// excluded says why nothing runs at a moment, or nothing.
func (t *Timetable) excluded(at time.Time) string {
	if f := t.freezeAt(at); f != nil {
		if f.Reason == "" {
			return "frozen until " + f.End.UTC().Format(time.RFC3339)
		}
		return "frozen until " + f.End.UTC().Format(time.RFC3339) + ": " + f.Reason
	}
	if len(t.Exclude.numbers) > 0 && t.Exclude.has(t.date(at)) {
		return "calendar_exclude names " + at.In(t.Rule.zone).Format(time.DateOnly)
	}
	return ""
}

func (t *Timetable) freezeAt(at time.Time) *Freeze {
	for i := range t.Freezes {
		if f := &t.Freezes[i]; !at.Before(f.Begin) && at.Before(f.End) {
			return f
		}
	}
	return nil
}

func (t *Timetable) date(at time.Time) int64 {
	return floor(at.Unix()+stretchAt(t.Rule.zone, at.Unix()).offset, day)
}

// excludedSpan is a time around an excluded moment in which everything is excluded for the same reason. It ends where the
// zone's offset changes, since the wall clock may show another date from there.
func (t *Timetable) excludedSpan(at time.Time) (begin, end time.Time) {
	if f := t.freezeAt(at); f != nil {
		return f.Begin, f.End
	}
	s := stretchAt(t.Rule.zone, at.Unix())
	midnight := floor(at.Unix()+s.offset, day)*day - s.offset
	return time.Unix(max(midnight, s.begin), 0), time.Unix(min(midnight+day, s.end), 0)
}
