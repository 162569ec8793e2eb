package calendar

import "time"

const (
	always = 1 << 60 // seconds beyond every time zone's first and last change
	around = 2 * day // no two passes of one wall time are further apart, nor is a gap longer
)

// stretch is a time in which a zone's offset stays the same: [begin, end) in seconds from 1970.
type stretch struct{ begin, end, offset int64 }

func stretchAt(zone *time.Location, at int64) stretch {
	moment := time.Unix(at, 0).In(zone)
	_, offset := moment.Zone()
	s := stretch{begin: -always, end: always, offset: int64(offset)}
	begin, end := moment.ZoneBounds()
	if !begin.IsZero() {
		s.begin = min(begin.Unix(), at)
	}
	if !end.IsZero() {
		// Beyond a zone's last recorded change ZoneBounds ends each year after 365 days, also leap years: on their last day
		// the end it gives has passed. The offset is right and holds for the rest of that day.
		if s.end = end.Unix(); s.end <= at {
			s.end = (floor(at, day) + 1) * day
		}
	}
	return s
}

func (s stretch) shows(wall int64) bool { return s.begin <= wall-s.offset && wall-s.offset < s.end }

// earlier tells whether the wall clock showed a time in a stretch before this one, and until which wall time it went on.
func (s stretch) earlier(zone *time.Location, wall int64) (until int64, ok bool) {
	for p := s; p.begin > -always && p.begin > s.begin-around; {
		p = stretchAt(zone, p.begin-1)
		if p.shows(wall) {
			return p.end + p.offset, true
		}
	}
	return 0, false
}

// later tells whether the wall clock shows a time again in a stretch after this one, and until which wall time it goes on.
func (s stretch) later(zone *time.Location, wall int64) (until int64, ok bool) {
	for n := s; n.end < always && n.end < s.end+around; {
		n = stretchAt(zone, n.end)
		if n.shows(wall) {
			return n.end + n.offset, true
		}
	}
	return 0, false
}

// nextWall is the first occurrence of an expression after a second. It goes from stretch to stretch: inside one, wall
// time and real time run alike.
func (r *Rule) nextWall(after int64, p Policy) (int64, Note, bool) {
	t := after + 1
	limit := min(t+horizon, lastDay)
	for t < limit {
		s := stretchAt(r.zone, t)
		end := min(s.end, limit) + s.offset
		if r.realTime {
			if wall, ok := r.wall(t+s.offset, end); ok {
				return wall - s.offset, "", true
			}
		} else {
			if p.Gap != Skip && t == s.begin && r.jumpedOver(s) {
				return t, NoteGap, true
			}
			if at, note, ok := r.inStretch(s, t+s.offset, end, p.Overlap); ok {
				return at, note, true
			}
		}
		t = s.end
	}
	return 0, "", false
}

// jumpedOver tells whether the jump at which a stretch begins swallowed a matching time that the clock shows nowhere.
func (r *Rule) jumpedOver(s stretch) bool {
	if s.begin == -always {
		return false
	}
	from, end := s.begin+stretchAt(r.zone, s.begin-1).offset, s.begin+s.offset
	for from < end {
		wall, ok := r.wall(from, end)
		if !ok {
			return false
		}
		until, shown := s.earlier(r.zone, wall)
		if !shown {
			until, shown = s.later(r.zone, wall)
		}
		if !shown {
			return true
		}
		from = until
	}
	return false
}

// inStretch is the first occurrence of a time of day whose wall time lies in [from, end) of a stretch.
func (r *Rule) inStretch(s stretch, from, end int64, overlap Overlap) (int64, Note, bool) {
	for {
		wall, ok := r.wall(from, end)
		if !ok {
			return 0, "", false
		}
		at := wall - s.offset
		var before, after bool
		var until int64
		if at-s.begin < around {
			if until, before = s.earlier(r.zone, wall); before && overlap != Second && overlap != Both {
				from = until
				continue
			}
		}
		if s.end-at < around {
			if until, after = s.later(r.zone, wall); after && overlap == Second {
				from = until
				continue
			}
		}
		if before || after {
			return at, NoteOverlap, true
		}
		return at, "", true
	}
}

// prevWall finds the last occurrence before a moment by halving: what Next answers never falls as its argument rises.
func (r *Rule) prevWall(before time.Time, p Policy) (int64, Note, bool) {
	end := before.Unix() // the first second that is too late
	if before.Nanosecond() > 0 {
		end++
	}
	var found int64
	var note Note
	for back := int64(64); ; back *= 8 {
		var ok bool
		if found, note, ok = r.nextWall(end-min(back, horizon)-1, p); ok && found < end {
			break
		}
		if back >= horizon {
			return 0, "", false
		}
	}
	for late := end; late-found > 1; {
		middle := found + (late-found)/2
		if at, n, ok := r.nextWall(middle-1, p); ok && at < late {
			found, note = at, n
		} else {
			late = middle
		}
	}
	return found, note, true
}
