package calendar

import "time"

// Moment is when a run is due, or about when several are.
type Moment struct {
	At   time.Time
	Runs int
}

// lookedUp is how many runs of one minute are looked up one by one; of more the rest of the minute is told by their distance.
const lookedUp = 4

// Moments lists the runs after one moment up to and including another, those of a minute together, at most so many moments.
// Looked says what that cost: how many times the rule was asked.
func (t *Timetable) Moments(from, to time.Time, most int) (list []Moment, looked int) {
	next := func(after time.Time) (time.Time, bool) {
		looked++
		o, ok := t.NextRun(after)
		return o.At, ok && !o.At.After(to)
	}
	at, ok := next(from)
	for ok && len(list) < most {
		m, end := Moment{At: at, Runs: 1}, at.Truncate(time.Minute).Add(time.Minute)
		for {
			last := at
			if at, ok = next(last); !ok || !at.Before(end) {
				break
			}
			if m.Runs++; m.Runs == lookedUp {
				m.Runs += int((end.Sub(at) - 1) / at.Sub(last))
				at, ok = next(end.Add(-1))
				break
			}
		}
		list = append(list, m)
	}
	return list, looked
}
