package forecast

import "nightshift/models"

// mostPlaces bounds the search for a place: a window of a day.
const mostPlaces = int(24 * 60)

// Quietest is where in a window a run of a load stands best: how long after its moment, in microseconds. It is the minute
// in which the pool's peak while the run lasts is least, then the least work beside it. Of places as good as each other it
// is the first from one that is wished for, so that loads which meet nothing keep their places and stand apart.
func (g *Grid) Quietest(l *Load, at, window, wished models.Instant) models.Instant {
	wished = min(max(0, wished), max(0, window))
	if g == nil || window < cell {
		return wished
	}
	_, long := height(l.Tasks.P90, l.Seconds.P90, l.Lasts)
	lasts := min(int(floor(span(long)-1, cell))+2, mostPlaces) // cells that a run may touch
	places := min(int(window/cell)+1, mostPlaces)
	rest := wished % cell
	v, from := g.view(l.Pool, Everything), g.cellAt(at+rest)
	beside := make([]float64, places+lasts) // what others ask for, by the minute
	for i := range beside {
		if c := from + i; c >= 0 && c < g.n {
			_, beside[i] = v.at(c)
		}
	}
	peaks, sums := over(beside, lasts)
	best, found := 0, false
	for k := range places {
		place := (int(wished/cell) + k) % places
		switch {
		case models.Instant(place)*cell+rest > window:
		case !found, peaks[place] < peaks[best]-slack, peaks[place] < peaks[best]+slack && sums[place] < sums[best]-slack:
			best, found = place, true
		}
	}
	return models.Instant(best)*cell + rest
}

// over are the highest value and the sum of each n values that follow one another.
func over(values []float64, n int) (peaks, sums []float64) {
	var falling []int // places of the values that may still be the highest
	sum := 0.0
	for i, v := range values {
		for len(falling) > 0 && values[falling[len(falling)-1]] <= v {
			falling = falling[:len(falling)-1]
		}
		falling = append(falling, i)
		if sum += v; i < n-1 {
			continue
		}
		if i >= n {
			sum -= values[i-n]
		}
		if falling[0] <= i-n {
			falling = falling[1:]
		}
		peaks, sums = append(peaks, values[falling[0]]), append(sums, sum)
	}
	return peaks, sums
}
