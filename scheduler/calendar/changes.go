package calendar

import (
	"fmt"
	"time"
)

// Change is what a change of the zone's clock does to a rule, in words for whoever writes it.
type Change struct {
	At    time.Time // the change
	Note  Note
	Words string
}

// mostChanges bounds one answer; a zone changes its clock twice a year at most, as a rule.
const mostChanges = 20

// Changes tells how a rule meets the changes of its zone's clock between two moments, at most forty years: the first
// matching time of each that is jumped over or comes twice. A rule that follows real time meets none.
func (r *Rule) Changes(from, to time.Time, p Policy) (list []Change) {
	if r.expression == "" || r.realTime {
		return nil
	}
	limit := min(to.Unix(), from.Unix()+horizon, lastDay)
	for s := stretchAt(r.zone, from.Unix()); s.end < limit && len(list) < mostChanges; {
		next := stretchAt(r.zone, s.end)
		if c, ok := r.change(s, next, p); ok {
			list = append(list, c)
		}
		s = next
	}
	return list
}

// change tells of the change between two stretches.
func (r *Rule) change(s, next stretch, p Policy) (Change, bool) {
	at := time.Unix(s.end, 0).In(r.zone)
	shown := func(wall int64) string { return time.Unix(wall, 0).UTC().Format("2006-01-02 15:04") }
	switch {
	case next.offset > s.offset && r.jumpedOver(next):
		wall, _ := r.wall(s.end+s.offset, s.end+next.offset)
		words := fmt.Sprintf("%s does not come in %s: the clock goes from %s to %s. ", shown(wall), r.zone, shown(s.end + s.offset)[11:], shown(s.end + next.offset)[11:])
		if p.Gap == Skip {
			words += "It is skipped"
		} else {
			words += "It runs at the jump, " + at.Format(time.RFC3339)
		}
		return Change{At: at, Note: NoteGap, Words: words}, true
	case next.offset < s.offset:
		wall, ok := r.wall(s.end+next.offset, s.end+s.offset)
		if !ok {
			return Change{}, false
		}
		first, second := time.Unix(wall-s.offset, 0).In(r.zone).Format(time.RFC3339), time.Unix(wall-next.offset, 0).In(r.zone).Format(time.RFC3339)
		words := fmt.Sprintf("%s comes twice in %s: the clock goes from %s back to %s. ", shown(wall), r.zone, shown(s.end + s.offset)[11:], shown(s.end + next.offset)[11:])
		switch p.Overlap {
		case Second:
			words += "It runs the second time, " + second
		case Both:
			words += "It runs both times, " + first + " and " + second
		default:
			words += "It runs the first time, " + first
		}
		return Change{At: at, Note: NoteOverlap, Words: words}, true
	}
	return Change{}, false
}
