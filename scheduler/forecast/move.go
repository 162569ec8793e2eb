package forecast

import (
	"cmp"
	"math"
	"slices"

	"nightshift/models"
)

// trial is one move that lowers a collision.
type trial struct {
	load    int
	minutes int
	peak    float64 // afterwards
	rough   float64 // how much rougher the whole gets
}

// before says that a trial is the better one. Of moves alike it is the shortest, of the first schedule, to later.
func (t *trial) before(o *trial) bool {
	return o.load < 0 || cmp.Or(compareNear(t.peak, o.peak), compareNear(t.rough, o.rough), cmp.Compare(abs(t.minutes), abs(o.minutes)), cmp.Compare(t.load, o.load), cmp.Compare(o.minutes, t.minutes)) < 0
}

// move finds the move of one schedule that lowers a collision most. It raises nothing to the collision's peak, wherever
// the schedule's other runs come to.
func (s *Scene) move(c *Collision) {
	p := s.pools[c.Pool]
	top := int((c.PeakAt - s.begin) / cell)
	best := trial{load: -1, peak: c.Peak - 2*slack}
	own := make([]part, len(p.total)) // what the load asks for, by cell
	for _, i := range s.movable(p, top, candidates) {
		l := s.loads[i]
		from, ok := s.fireAt(l, top)
		if !ok {
			continue
		}
		from -= l.Offset
		for _, part := range s.parts[i] {
			own[part.cell] = part
		}
		for minutes := -l.Reach; minutes <= l.Reach; minutes++ {
			to := from + models.Instant(minutes)*cell
			if minutes == 0 || to < s.now+cell || s.left <= 0 {
				continue
			}
			t := trial{load: i, minutes: minutes}
			s.left -= 2*len(s.parts[i]) + int((c.Until-c.From)/cell)
			if s.try(c, p, own, &t, best.peak) && t.before(&best) && (l.May == nil || l.May(minutes)) {
				best = t
				c.Move = &Move{Schedule: l.Schedule, Minutes: minutes, From: from, To: to, PeakAfter: t.peak}
			}
		}
		for _, part := range s.parts[i] {
			own[part.cell] = blank
		}
	}
}

var blank part

// rough weighs what a cell asks for: the higher, the far heavier.
func rough(total float64) float64 { return math.Pow(total, 8) }

// movable are the loads at work in a cell that may be moved, the largest first. A schedule with several loads stays.
func (s *Scene) movable(p *pool, top, most int) []int {
	var out []int
	for _, i := range p.loads {
		l := s.loads[i]
		shared := i > 0 && s.loads[i-1].Schedule == l.Schedule || i+1 < len(s.loads) && s.loads[i+1].Schedule == l.Schedule
		if l.Reach > 0 && !shared && s.partAt(int32(i), top).high > 0 {
			out = append(out, i)
		}
	}
	slices.SortStableFunc(out, func(a, b int) int {
		return cmp.Compare(s.partAt(int32(b), top).high, s.partAt(int32(a), top).high)
	})
	return out[:min(len(out), most)]
}

// try says what the peak of a collision is once a load was moved, as long as it is no more than some other.
func (s *Scene) try(c *Collision, p *pool, own []part, t *trial, most float64) bool {
	kind := s.loads[t.load].Kind
	at := func(cell int) part { // what the load asks for there afterwards
		if cell -= t.minutes; cell < 0 || cell >= len(own) {
			return blank
		}
		return own[cell]
	}
	for c, end := int((c.From-s.begin)/cell), int((c.Until-s.begin)/cell); c < end; c++ { // the stretch, moved or not
		if t.peak = max(t.peak, p.after(kind, c, own[c], at(c))); t.peak > most+slack {
			return false
		}
	}
	for _, was := range s.parts[t.load] {
		if c := was.cell + t.minutes; c >= s.from && c < s.from+s.n {
			after := p.after(kind, c, own[c], at(c))
			if t.peak = max(t.peak, after); t.peak > most+slack {
				return false
			}
			t.rough += rough(after) - rough(p.total[c])
		}
		if c := was.cell; c >= s.from && c < s.from+s.n && at(c) == blank {
			after := p.after(kind, c, was, blank)
			t.rough += rough(after) - rough(p.total[c])
		}
	}
	return true
}

// after is what a cell asks for when a load asks for something else in it.
func (p *pool) after(kind models.KindName, c int, was, is part) float64 {
	mid, square := p.mid[c], p.square[c]
	mid[kind] = max(0, mid[kind]+is.mid-was.mid)
	square[kind] = max(0, square[kind]+(is.high-is.mid)*(is.high-is.mid)-(was.high-was.mid)*(was.high-was.mid))
	return p.sum(c, &mid, &square)
}

// fireAt is the run of a load that is at work in a cell: the last to have started.
func (s *Scene) fireAt(l *Load, c int) (at models.Instant, ok bool) {
	end := s.begin + models.Instant(c+1)*cell
	for _, f := range l.Fires {
		if f.At >= end {
			break
		}
		at, ok = f.At, true
	}
	return at, ok
}

// Shift is the load some minutes later.
func (l *Load) Shift(minutes int) *Load {
	out := *l
	out.Fires = make([]Fire, len(l.Fires))
	for i, f := range l.Fires {
		out.Fires[i] = Fire{At: f.At + models.Instant(minutes)*cell, Runs: f.Runs}
	}
	return &out
}

func compareNear(a, b float64) int {
	if math.Abs(a-b) <= slack {
		return 0
	}
	return cmp.Compare(a, b)
}

func abs(n int) int { return max(n, -n) }

// Judge says what a move of a schedule would do to the collisions it takes part in: the highest that it lowers, with the peak
// afterwards. Without one it says why not.
func (s *Scene) Judge(schedule models.ID, from models.Instant, minutes int) (*Collision, Why) {
	why := Alone
	for _, c := range s.listed() {
		top := int((c.PeakAt - s.begin) / cell)
		p := s.pools[c.Pool]
		i := slices.IndexFunc(s.loads, func(l *Load) bool { return l.Schedule == schedule })
		if i < 0 || s.loads[i].Pool != c.Pool || s.partAt(int32(i), top).high == 0 {
			continue
		}
		l := s.loads[i]
		switch {
		case !slices.Contains(s.movable(p, top, len(p.loads)), i), l.May != nil && !l.May(minutes):
			return nil, Fixed
		case minutes == 0 || abs(minutes) > l.Reach:
			return nil, TooFar
		}
		own := make([]part, len(p.total))
		for _, part := range s.parts[i] {
			own[part.cell] = part
		}
		t := trial{load: i, minutes: minutes}
		if s.try(&c, p, own, &t, c.Peak-2*slack) {
			c.Move = &Move{Schedule: schedule, Minutes: minutes, From: from, To: from + models.Instant(minutes)*cell, PeakAfter: t.peak}
			return &c, ""
		}
		why = NoBetter
	}
	return nil, why
}

// Why says why a move is none that would be suggested.
type Why string

// The reasons.
const (
	Alone    Why = "alone"     // it takes part in no collision
	Fixed    Why = "fixed"     // it can't be moved so
	TooFar   Why = "too_far"   // further than suggestions go
	NoBetter Why = "no_better" // it lowers no peak
)
