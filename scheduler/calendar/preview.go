package calendar

import "time"

// mostPreview is the longest preview.
const mostPreview = 1000

// Occurrence is one moment at which work should exist.
type Occurrence struct {
	At       time.Time // on the rule's wall clock
	Note     Note
	Excluded string // why nothing runs, empty when something does
}

// Local is the moment as the rule's wall clock shows it, with its offset.
func (o Occurrence) Local() string { return o.At.Format(time.RFC3339) }

// Preview lists the next occurrences strictly after a moment, at most 1,000.
func Preview(r *Rule, p Policy, from time.Time, count int) []Occurrence {
	list := make([]Occurrence, 0, min(max(count, 0), mostPreview))
	for len(list) < cap(list) {
		at, note, ok := r.Next(from, p)
		if !ok {
			break
		}
		list = append(list, Occurrence{At: at, Note: note})
		from = at
	}
	return list
}
