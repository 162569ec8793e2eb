package forecast

import (
	"cmp"
	"math"
	"slices"

	"nightshift/models"
)

// Grid is what is foreseen from a moment on, by the minute.
type Grid struct {
	begin  models.Instant
	n      int
	series map[Of]*series
	sheet  *sheet
	seen   *Seen
}

// series adds up loads: their middles, and the squares of what each may pass its middle by. Loads vary independently of
// each other, so that nine times in ten all together stay within the sum of the middles and the root of the squares.
type series struct{ mid, square []float64 }

func (s *series) add(parts []part, sign float64) {
	for _, p := range parts {
		s.mid[p.cell] = max(0, s.mid[p.cell]+sign*p.mid)
		s.square[p.cell] = max(0, s.square[p.cell]+sign*(p.high-p.mid)*(p.high-p.mid))
	}
}

// NewGrid begins with the minute that a moment lies in and foresees nothing yet. What was seen before corrects what it
// says; nil: nothing does.
func NewGrid(from models.Instant, span models.Instant, seen *Seen) *Grid {
	n := int((max(0, span) + cell - 1) / cell)
	return &Grid{begin: floor(from, cell) * cell, n: n, series: map[Of]*series{}, sheet: newSheet(n), seen: seen}
}

// Begin is its first moment, End the first beyond it.
func (g *Grid) Begin() models.Instant { return g.begin }

// End is the first moment of which it says nothing.
func (g *Grid) End() models.Instant { return g.begin + models.Instant(g.n)*cell }

// Add takes a load in.
func (g *Grid) Add(l *Load) { g.add(l, 1) }

// Take takes out a load that was added.
func (g *Grid) Take(l *Load) { g.add(l, -1) }

func (g *Grid) add(l *Load, sign float64) {
	parts := g.sheet.parts(l, g.begin)
	if len(parts) > 0 {
		g.of(l.Of).add(parts, sign)
	}
}

func (g *Grid) of(of Of) *series {
	s := g.series[of]
	if s == nil {
		s = &series{mid: make([]float64, g.n), square: make([]float64, g.n)}
		g.series[of] = s
	}
	return s
}

// cellAt is the cell of a moment; it may lie outside.
func (g *Grid) cellAt(at models.Instant) int { return int(floor(at-g.begin, cell)) }

// At is how many tasks are foreseen to run at the same time in the minute of a moment.
func (g *Grid) At(of Of, at models.Instant) (p50, p90 float64) {
	s, c := g.series[of], g.cellAt(at)
	if s == nil || c < 0 || c >= g.n {
		return 0, 0
	}
	f := g.seen.Factor(of, at)
	return f * s.mid[c], f * (s.mid[c] + math.Sqrt(s.square[c]))
}

// Of lists the pools and kinds of which it foresees something, in order.
func (g *Grid) Of() []Of {
	out := make([]Of, 0, len(g.series))
	for of := range g.series { // any order: sorted below
		out = append(out, of)
	}
	slices.SortFunc(out, func(a, b Of) int {
		return cmp.Or(cmp.Compare(a.Pool, b.Pool), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Lane, b.Lane))
	})
	return out
}

// Raw is At without the correction by what was seen.
func (g *Grid) Raw(of Of, at models.Instant) float64 {
	s, c := g.series[of], g.cellAt(at)
	if s == nil || c < 0 || c >= g.n {
		return 0
	}
	return s.mid[c]
}

// Kinds is a set of kinds.
type Kinds [4]bool

// Peak is the most slots that some kinds of a pool together are foreseen to ask for in any minute from one moment until
// just before another, as far as the grid reaches.
func (g *Grid) Peak(pool string, kinds Kinds, from, until models.Instant) (p50, p90 float64) {
	if g == nil {
		return 0, 0
	}
	v := g.view(pool, kinds)
	first, last := max(0, g.cellAt(from)), min(g.n-1, g.cellAt(until-1))
	for c := first; c <= last; c++ {
		mid, high := v.at(c)
		p50, p90 = max(p50, mid), max(p90, high)
	}
	return p50, p90
}

// view are the series of some kinds of a pool with what corrects them.
type view struct {
	begin  models.Instant
	series []*series
	seen   []*[dayBuckets]float32
}

func (g *Grid) view(pool string, kinds Kinds) view {
	v := view{begin: g.begin}
	for _, kind := range models.Kinds() {
		of := Of{Pool: pool, Kind: kind}
		if s := g.series[of]; kinds[kind] && s != nil {
			v.series, v.seen = append(v.series, s), append(v.seen, g.seen.of(of))
		}
	}
	return v
}

func (v *view) at(c int) (p50, p90 float64) {
	square, i := 0.0, bucketOf(v.begin+models.Instant(c)*cell)
	for k, s := range v.series {
		f := 1.0
		if v.seen[k] != nil {
			f = float64(v.seen[k][i])
		}
		p50, square = p50+f*s.mid[c], square+f*f*s.square[c]
	}
	return p50, p50 + math.Sqrt(max(0, square))
}

// Everything are all kinds.
var Everything = Kinds{true, true, true, true}

// Slot is five minutes of a pool, kind and lane.
type Slot struct {
	Of
	At       models.Instant
	P50, P90 float64 // of the busiest of its minutes
}

// Buckets lists the five minutes in which something is foreseen, by their moment.
func (g *Grid) Buckets() (out []Slot) {
	for _, of := range g.Of() {
		s := g.series[of]
		for c := 0; c < g.n; {
			at := floor(g.begin+models.Instant(c)*cell, bucket) * bucket
			slot := Slot{Of: of, At: at}
			f := g.seen.Factor(of, at)
			for ; c < g.n && g.begin+models.Instant(c)*cell < at+bucket; c++ {
				slot.P50 = max(slot.P50, f*s.mid[c])
				slot.P90 = max(slot.P90, f*(s.mid[c]+math.Sqrt(s.square[c])))
			}
			if slot.P90 > 0 {
				out = append(out, slot)
			}
		}
	}
	slices.SortStableFunc(out, func(a, b Slot) int { return cmp.Compare(a.At, b.At) })
	return out
}
