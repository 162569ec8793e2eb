package calendar

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"nightshift/models"
)

// Debounce says when events that have gathered become one run.
type Debounce struct {
	Quiet      time.Duration // so long no new event
	MostWait   time.Duration // but no longer than this after the first; 0 is no bound
	MostEvents int           // and at once when there are so many; 0 is no bound
}

// FireAt is the moment at which gathered events become a run. A new event asks again; a run takes the oldest, as many as
// Take says, and what is left over asks anew with its own first.
func (d Debounce) FireAt(first, last time.Time, count int) time.Time {
	if d.MostEvents > 0 && count >= d.MostEvents {
		return last
	}
	at := last.Add(d.Quiet)
	if bound := first.Add(d.MostWait); d.MostWait > 0 && bound.Before(at) {
		return bound
	}
	return at
}

// Take is how many of the gathered events one run gets.
func (d Debounce) Take(count int) int {
	if d.MostEvents > 0 {
		return min(count, d.MostEvents)
	}
	return count
}

// Drain says how waiting items become runs.
type Drain struct {
	MostItems int // a run
	BatchSize int // a task
	Parts     int // at most so many tasks, which share alike; 0: as many as it needs
}

// FireAt is the moment at which a queue that holds something is drained again: at once, but at most once a second.
func (d Drain) FireAt(lastFired, oldest time.Time) time.Time {
	return later(oldest, lastFired.Add(time.Second))
}

// Split shares waiting items out over the tasks of one run, in their order: how many each gets. A task gets at most so many
// bytes of data, or one item that is larger.
func (d Drain) Split(sizes []int32, mostBytes int64) (batches []int) {
	sizes = sizes[:min(len(sizes), d.MostItems)]
	for len(sizes) > 0 && (d.Parts == 0 || len(batches) < d.Parts) {
		want := d.BatchSize
		if left := d.Parts - len(batches); d.Parts > 0 {
			want = min(want, (len(sizes)+left-1)/left)
		}
		n, bytes := 1, int64(sizes[0])
		for n < min(want, len(sizes)) && bytes+int64(sizes[n]) <= mostBytes {
			bytes += int64(sizes[n])
			n++
		}
		batches, sizes = append(batches, n), sizes[n:]
	}
	return batches
}

// OpenFrom is the first moment, from one on, at which what has gathered may run: not before the start, on no date that is
// left out, in no freeze; false when that is after the end.
func (t *Timetable) OpenFrom(at time.Time) (time.Time, bool) {
	at = later(at, t.Start)
	for t.excluded(at) != "" {
		if !t.End.IsZero() && at.After(t.End) {
			break
		}
		_, at = t.excludedSpan(at)
	}
	return at, t.End.IsZero() || !at.After(t.End)
}

// checkSpan refuses a time between start and end in which nothing can run from now on.
func (t *Timetable) checkSpan(now time.Time) error {
	if _, ok := t.OpenFrom(now); !ok {
		return models.Errorf(models.InvalidSchedule, "end_at: the schedule never fires: it lies behind, or every day up to it is excluded")
	}
	return nil
}

// DebounceOf is what a stored rule says of triggers.
func DebounceOf(r *models.EventRule) Debounce {
	span := func(seconds float64) time.Duration { return time.Duration(seconds * float64(time.Second)) }
	return Debounce{Quiet: span(r.DebounceSeconds), MostWait: span(r.MaxWaitSeconds), MostEvents: int(r.MaxEvents)}
}

// DrainOf is what a stored rule says of a queue.
func DrainOf(r *models.ScheduleRule) Drain {
	return Drain{MostItems: int(r.Drain.MaxItems), BatchSize: int(r.Drain.BatchSize), Parts: int(r.Partitions)}
}

// GatherWords describes in plain words when a rule that follows no clock runs.
func GatherWords(r *models.ScheduleRule) string {
	if d := r.Drain; d != nil {
		text := fmt.Sprintf("As soon as the queue %s holds something, at most once a second: up to %s a run, %s a portion", d.Queue, counted(int64(d.MaxItems), "item"), counted(int64(d.BatchSize), "item"))
		if r.Partitions > 0 {
			text += ", shared out over at most " + counted(int64(r.Partitions), "partition")
		}
		return text
	}
	v := r.Event
	if v == nil {
		return ""
	}
	if v.DebounceSeconds == 0 {
		return "At each trigger named " + v.Name
	}
	text := fmt.Sprintf("When triggers named %s have been quiet for %s", v.Name, span(v.DebounceSeconds))
	var bounds []string
	if v.MaxWaitSeconds > 0 {
		bounds = append(bounds, span(v.MaxWaitSeconds)+" after the first")
	}
	if v.MaxEvents > 0 {
		bounds = append(bounds, fmt.Sprintf("when there are %d of them", v.MaxEvents))
	}
	if len(bounds) > 0 {
		text += ", at the latest " + strings.Join(bounds, " or ")
	}
	return text
}

// span is a number of seconds in words, parts of one too.
func span(seconds float64) string {
	if whole := time.Duration(seconds) * time.Second; whole.Seconds() == seconds {
		return spoken(whole)
	}
	return strconv.FormatFloat(seconds, 'f', -1, 64) + " seconds"
}
