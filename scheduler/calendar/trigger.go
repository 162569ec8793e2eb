package calendar

import "time"

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
}

// FireAt is the moment at which a queue that holds something is drained again: at once, but at most once a second.
func (d Drain) FireAt(lastFired, oldest time.Time) time.Time {
	return later(oldest, lastFired.Add(time.Second))
}

// Split shares waiting items out over the tasks of one run: how many each gets.
func (d Drain) Split(waiting int) (batches []int) {
	for left := min(waiting, d.MostItems); left > 0; {
		n := min(left, max(1, d.BatchSize))
		batches = append(batches, n)
		left -= n
	}
	return batches
}
