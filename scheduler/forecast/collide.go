package forecast

import (
	"cmp"
	"math"
	"slices"

	"nightshift/models"
)

// Capacity is what a pool has: its slots, and how many of them each kind may take.
type Capacity struct {
	All int64    `json:"all"`
	For [4]int64 `json:"for"`
}

// Slots are so many that any kind may take.
func Slots(n int64) Capacity { return Capacity{n, [4]int64{n, n, n, n}} }

// Bounds of an answer.
const (
	StandsOut      = 1.2 // times the mean of its pool: a peak above it is worth to be told of
	MostCollisions = 50
	MostNamed      = 50         // schedules of a collision
	mostTried      = 30_000_000 // cells that all moves of one answer together look at
	candidates     = 100        // schedules of a collision for which a quieter place is sought
)

// Collision is a stretch in which the work of several schedules meets, and asks for more than the pool has or for much
// more than at other times.
type Collision struct {
	Pool        string
	Kinds       []models.KindName
	From, Until models.Instant
	Peak        float64        // tasks at the same time, nine times in ten
	PeakAt      models.Instant // the minute it comes in
	Over        bool           // it passes the capacity
	Schedules   []models.ID    // that ask for most at the peak, the largest first
	Count       int            // of all of them
	Move        *Move          // nil: no move of one schedule lowers it
}

// Move moves a schedule by some minutes.
type Move struct {
	Schedule  models.ID
	Minutes   int
	From, To  models.Instant // the occurrence at the peak and where it goes, as its schedule counts
	PeakAfter float64        // in the same stretch, and wherever the schedule comes to
}

// margin is how many minutes before and after its time a scene looks at: what moves comes from there, and goes there.
const margin = 60

// Scene is a set of loads that is looked at as a whole, cell by cell: its time, and a margin on either side.
type Scene struct {
	begin    models.Instant // of the margin before
	from, n  int            // the cells of its time
	now      models.Instant
	left     int // cells that may still be looked at for moves
	loads    []*Load
	parts    [][]part
	capacity map[string]Capacity
	pools    map[string]*pool
	names    []string // of pools, in order
}

// pool sums up the loads of one, by cell and kind.
type pool struct {
	mid, square [][4]float64
	factor      [][4]float64
	total       []float64
	mean        float64
	loads       []int
}

// NewScene looks at loads over a time. Their fires should be there for the hour before and after it as well. Capacities
// that are not there are not known.
func NewScene(from, span models.Instant, loads []*Load, capacity map[string]Capacity, seen *Seen) *Scene {
	n := int((max(0, span) + cell - 1) / cell)
	s := &Scene{begin: (floor(from, cell) - margin) * cell, from: margin, n: n, now: from, capacity: capacity, pools: map[string]*pool{}}
	s.loads = slices.Clone(loads)
	slices.SortStableFunc(s.loads, func(a, b *Load) int {
		return cmp.Or(a.Schedule.Compare(b.Schedule), cmp.Compare(a.Pool, b.Pool), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Lane, b.Lane))
	})
	all := n + 2*margin
	sheet := newSheet(all)
	for i, l := range s.loads {
		parts := sheet.parts(l, s.begin)
		s.parts = append(s.parts, parts)
		p := s.pools[l.Pool]
		if p == nil {
			p = &pool{mid: make([][4]float64, all), square: make([][4]float64, all), factor: make([][4]float64, all), total: make([]float64, all)}
			s.pools[l.Pool] = p
			s.names = append(s.names, l.Pool)
		}
		p.loads = append(p.loads, i)
		for _, at := range parts {
			p.mid[at.cell][l.Kind] += at.mid
			p.square[at.cell][l.Kind] += (at.high - at.mid) * (at.high - at.mid)
		}
	}
	slices.Sort(s.names)
	for _, name := range s.names {
		p := s.pools[name]
		for c := range all {
			for _, k := range models.Kinds() {
				p.factor[c][k] = seen.Factor(Of{Pool: name, Kind: k}, s.begin+models.Instant(c)*cell)
			}
			p.total[c] = p.sum(c, &p.mid[c], &p.square[c])
		}
		for _, total := range p.total[s.from : s.from+n] {
			p.mean += total / float64(max(1, n))
		}
	}
	return s
}

// kind is what one kind asks for in a cell.
func (p *pool) kind(c int, kind models.KindName) float64 {
	return p.factor[c][kind] * (p.mid[c][kind] + math.Sqrt(max(0, p.square[c][kind])))
}

// sum is what all kinds ask for in a cell.
func (p *pool) sum(c int, mid, square *[4]float64) float64 {
	sum, squares := 0.0, 0.0
	for _, k := range models.Kinds() {
		f := p.factor[c][k]
		sum, squares = sum+f*mid[k], squares+f*f*square[k]
	}
	return sum + math.Sqrt(max(0, squares))
}

// over says that a cell asks for more than there is.
func (s *Scene) over(name string, p *pool, c int) bool {
	has, known := s.capacity[name]
	if !known || has.All == 0 {
		return false
	}
	if p.total[c] > float64(has.All)+slack {
		return true
	}
	for _, k := range models.Kinds() {
		if p.kind(c, k) > float64(has.For[k])+slack {
			return true
		}
	}
	return false
}

// slack is what two sums of the same numbers may differ by.
const slack = 1e-6

// Peak is the most that a pool is asked for, Mean the mean.
func (s *Scene) Peak(name string) (peak, mean float64) {
	p := s.pools[name]
	if p == nil {
		return 0, 0
	}
	for _, total := range p.total[s.from : s.from+s.n] {
		peak = max(peak, total)
	}
	return peak, p.mean
}

// Collisions are where the loads meet, by their moment, with the move that lowers each most. Of more than so many the
// highest are told.
func (s *Scene) Collisions(most int) []Collision {
	out := s.listed()
	out = out[:min(len(out), most)]
	s.left = mostTried
	for i := range out {
		s.move(&out[i])
	}
	slices.SortStableFunc(out, func(a, b Collision) int { return cmp.Compare(a.From, b.From) })
	return out
}

// listed are the collisions without moves, the highest first.
func (s *Scene) listed() (out []Collision) {
	for _, name := range s.names {
		out = append(out, s.meetings(name, s.pools[name])...)
	}
	slices.SortStableFunc(out, func(a, b Collision) int {
		return cmp.Or(cmp.Compare(b.Peak, a.Peak), cmp.Compare(a.From, b.From))
	})
	return out
}

// meetings are the stretches of one pool in which several schedules meet and the sum is too high or stands out: around each
// peak as far as any of those that meet in it are at work.
func (s *Scene) meetings(name string, p *pool) (out []Collision) {
	at := make([][]int32, len(p.total)) // the loads at work in a cell
	for _, i := range p.loads {
		for _, part := range s.parts[i] {
			at[part.cell] = append(at[part.cell], int32(i))
		}
	}
	var tops []int
	free := make([]bool, len(p.total)) // high, and of no collision yet
	for c := s.from; c < s.from+s.n; c++ {
		if len(at[c]) > 1 && (s.over(name, p, c) || p.total[c] > StandsOut*p.mean+slack) {
			free[c], tops = true, append(tops, c)
		}
	}
	slices.SortStableFunc(tops, func(a, b int) int { return cmp.Compare(p.total[b], p.total[a]) })
	meets := make([]int, len(s.loads)) // the peak that a load was last seen to be at, as its number + 1
	for n, top := range tops {
		if !free[top] {
			continue
		}
		for _, i := range at[top] {
			meets[i] = n + 1
		}
		goesOn := func(c int) bool {
			return c >= 0 && c < len(free) && free[c] && slices.ContainsFunc(at[c], func(i int32) bool { return meets[i] == n+1 })
		}
		first, end := top, top+1
		for free[top] = false; goesOn(first - 1); first-- {
			free[first-1] = false
		}
		for ; goesOn(end); end++ {
			free[end] = false
		}
		out = append(out, s.collision(name, p, at, first, end, top))
	}
	return out
}

func (s *Scene) collision(name string, p *pool, at [][]int32, first, end, top int) Collision {
	out := Collision{Pool: name, From: s.begin + models.Instant(first)*cell, Until: s.begin + models.Instant(end)*cell, PeakAt: s.begin + models.Instant(top)*cell, Peak: p.total[top]}
	for c := first; c < end; c++ {
		out.Over = out.Over || s.over(name, p, c)
	}
	kinds := Kinds{}
	list := slices.Clone(at[top])
	for _, i := range list {
		kinds[s.loads[i].Kind] = true
	}
	for _, k := range models.Kinds() {
		if kinds[k] {
			out.Kinds = append(out.Kinds, k)
		}
	}
	slices.SortStableFunc(list, func(a, b int32) int {
		return cmp.Or(cmp.Compare(s.partAt(b, top).high, s.partAt(a, top).high), cmp.Compare(a, b))
	})
	for _, i := range list {
		if id := s.loads[i].Schedule; !slices.Contains(out.Schedules, id) {
			if out.Count++; len(out.Schedules) < MostNamed {
				out.Schedules = append(out.Schedules, id)
			}
		}
	}
	return out
}

// partAt is what a load asks for in a cell.
func (s *Scene) partAt(i int32, c int) part {
	j, found := slices.BinarySearchFunc(s.parts[i], c, func(p part, c int) int { return cmp.Compare(p.cell, c) })
	if !found {
		return part{cell: c}
	}
	return s.parts[i][j]
}
