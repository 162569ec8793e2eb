package forecast

import (
	"math"
	"slices"
	"time"

	"nightshift/models"
)

// A Cell is the grain of time, a Bucket what is shown of it.
const (
	Cell        = time.Minute
	Bucket      = 5 * time.Minute
	BucketCells = int(Bucket / Cell)

	cell = models.Instant(Cell / time.Microsecond)
)

// Quantiles are values that the half, seven tenths and nine tenths of what was seen stayed within.
type Quantiles struct{ P50, P70, P90 float64 }

// Exactly is a value that is known.
func Exactly(v float64) Quantiles { return Quantiles{v, v, v} }

// Fire is a moment at which a run starts, or about which several do.
type Fire struct {
	At   models.Instant
	Runs int32
}

// Of names what a forecast is kept apart by. Lane 0: over all lanes.
type Of struct {
	Pool string
	Kind models.KindName
	Lane int32
}

// Load is what one schedule is going to ask for.
type Load struct {
	Of
	Schedule models.ID
	Fires    []Fire    // by their moment
	Tasks    Quantiles // that a run makes
	Seconds  Quantiles // that each of them takes
	Lasts    float64   // seconds over which the tasks of a run are spread; 0: they start together
	Alone    bool      // a run that meets the one before is left out

	// Of suggestions: it may be moved so many minutes either way, where May says so. Offset is what lies between the
	// moment that is moved and the start, in microseconds.
	Reach  int
	May    func(minutes int) bool // nil: it may
	Offset models.Instant
}

// height is how many tasks of a run are at work at the same time, and for how long.
func height(tasks, seconds, lasts float64) (n, long float64) {
	tasks, seconds = max(0, tasks), max(0, seconds)
	if lasts <= seconds {
		return tasks, seconds
	}
	return tasks * seconds / lasts, lasts
}

// Longest is how long a run of it may be at work, in seconds.
func (l *Load) Longest() float64 { return max(l.Lasts, l.Seconds.P50, l.Seconds.P90) }

// Cells is about how many minutes of a time it touches, at most: what it costs to look at.
func (l *Load) Cells(span models.Instant) int {
	each := min(l.Longest()/Cell.Seconds()+2, float64(span/cell)+2)
	return int(min(each*float64(len(l.Fires)), float64(span/cell)+2*margin))
}

// part is what a load asks for in one cell: tasks at work at the same time.
type part struct {
	cell      int
	mid, high float64
}

// sheet adds up what one load asks for. It is used again for the next.
type sheet struct {
	mid, high []float64 // task minutes
	touched   []int
}

func newSheet(n int) *sheet { return &sheet{mid: make([]float64, n), high: make([]float64, n)} }

// parts are the cells from begin on that a load touches, rising. In each it asks for the work of all its runs there, but
// for no less than one of them has at work.
func (s *sheet) parts(l *Load, begin models.Instant) []part {
	mid, midLong := height(l.Tasks.P50, l.Seconds.P50, l.Lasts)
	high, highLong := height(l.Tasks.P90, l.Seconds.P90, l.Lasts)
	high, highLong = max(mid, high), max(midLong, highLong)
	if high == 0 || highLong == 0 {
		return nil
	}
	free := models.Instant(math.MinInt64) // when the run before is over
	for _, f := range l.Fires {
		runs := float64(max(1, f.Runs))
		if l.Alone {
			if f.At < free {
				continue
			}
			free, runs = f.At+span(midLong), min(runs, max(1, Cell.Seconds()/midLong))
		}
		s.add(s.mid, f.At-begin, midLong, runs*mid)
		s.add(s.high, f.At-begin, highLong, runs*high)
	}
	slices.Sort(s.touched)
	s.touched = slices.Compact(s.touched)
	out := make([]part, 0, len(s.touched))
	for _, c := range s.touched {
		p := part{cell: c}
		if s.mid[c] > 0 {
			p.mid = max(mid, s.mid[c])
		}
		p.high = max(high, s.high[c], p.mid)
		out = append(out, p)
		s.mid[c], s.high[c] = 0, 0
	}
	s.touched = s.touched[:0]
	return out
}

// add spreads runs that start at a moment and take so long over the cells they touch.
func (s *sheet) add(into []float64, at models.Instant, long, n float64) {
	if n == 0 || long == 0 {
		return
	}
	end := at + span(long)
	first, last := int(floor(at, cell)), int(floor(end-1, cell))
	for c := max(0, first); c <= min(len(into)-1, last); c++ {
		from, until := max(at, models.Instant(c)*cell), min(end, models.Instant(c+1)*cell)
		into[c] += n * float64(until-from) / float64(cell)
		s.touched = append(s.touched, c)
	}
}

// span is a time in microseconds, at least one, and no longer than a year.
func span(seconds float64) models.Instant {
	return max(1, models.Instant(min(seconds, 366*24*3600)*1e6))
}

// floor divides towards the past.
func floor(a, b models.Instant) models.Instant {
	if a < 0 {
		return -((b - 1 - a) / b)
	}
	return a / b
}
