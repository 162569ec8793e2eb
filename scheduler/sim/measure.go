package sim

import (
	"maps"
	"math"
	"slices"
	"time"

	"nightshift/models"
)

// flow is an arrival with what came of it.
type flow struct {
	Flow
	waits []time.Duration
}

// gauge sees how full the pools are.
type gauge struct {
	of     map[string]*level
	points []Point
	every  time.Duration
	next   models.Instant
	shares []float64 // slot seconds of the point, by tenant
	busy   float64
}

// level is what of a pool is in use, by resource: slots, CPU, memory, cards, VRAM.
type level struct {
	has, used, mean, contended [5]float64
	seconds, wanted            float64
}

func newGauge(s *Scenario) gauge {
	g := gauge{of: map[string]*level{}, shares: make([]float64, len(s.Tenants))}
	if s.Points > 0 {
		g.every = s.Until / time.Duration(s.Points)
		g.next = dawn.Add(g.every)
	}
	return g
}

func (g *gauge) level(pool string) *level {
	l := g.of[pool]
	if l == nil {
		l = &level{}
		g.of[pool] = l
	}
	return l
}

// has is what a worker brings.
func has(w *models.Worker) [5]float64 {
	slots := float64(w.Slots)
	for _, n := range w.KindSlots { // any order: a sum of whole numbers
		slots += float64(n)
	}
	vram := int64(0)
	for _, c := range w.GPUs {
		vram += c.VRAMMB
	}
	return [5]float64{slots, float64(w.CPUMilli), float64(w.MemoryMB), float64(len(w.GPUs)), float64(vram)}
}

// wants is what a class takes.
func wants(c *models.Class) [5]float64 {
	cards := float64(c.GPU)
	if c.VRAMMB > 0 {
		cards = max(1, cards)
	}
	return [5]float64{1, float64(c.CPUMilli), float64(c.MemoryMB), cards, cards * float64(c.VRAMMB)}
}

// share is the dominant part of the pool that a class takes.
func (l *level) share(c *models.Class) float64 {
	most := 0.0
	for i, want := range wants(c) {
		if l.has[i] > 0 {
			most = max(most, want/l.has[i])
		}
	}
	return most
}

func (l *level) join(w *models.Worker, sign float64) {
	for i, v := range has(w) {
		l.has[i] += sign * v
	}
}

func (l *level) take(c *models.Class, sign float64) {
	for i, v := range wants(c) {
		l.used[i] += sign * v
	}
}

func (l *level) pass(seconds float64, wanted bool) {
	l.seconds += seconds
	if wanted {
		l.wanted += seconds
	}
	for i := range l.has {
		if l.has[i] == 0 {
			continue
		}
		part := l.used[i] / l.has[i] * seconds
		l.mean[i] += part
		if wanted {
			l.contended[i] += part
		}
	}
}

func (g *gauge) pools() []Pool {
	var out []Pool
	for _, name := range slices.Sorted(maps.Keys(g.of)) {
		l := g.of[name]
		p := Pool{Name: name, Slots: int64(l.has[0])}
		if l.seconds > 0 {
			p.Utilization = slices.Max(l.mean[:]) / l.seconds
		}
		if l.wanted > 0 {
			p.Contended = slices.Max(l.contended[:]) / l.wanted
		}
		out = append(out, p)
	}
	return out
}

// pass lets time go on for the pools and the timeline.
func (w *World) passGauge(to models.Instant) {
	g := &w.gauge
	seconds := to.Sub(w.now).Seconds()
	for _, l := range g.of { // any order: each on its own
		l.pass(seconds, w.watch.ready > 0)
	}
	if g.every == 0 {
		return
	}
	for at := w.now; at < to; {
		end := min(to, g.next)
		span := end.Sub(at).Seconds()
		for i, t := range w.order {
			g.shares[i] += float64(t.running) * span
			g.busy += float64(t.running) * span
		}
		if at = end; at == g.next {
			w.mark()
		}
	}
}

// mark ends a piece of the timeline.
func (w *World) mark() {
	g := &w.gauge
	p := Point{At: g.next.Sub(dawn), Ready: w.watch.ready, Parked: w.watch.parked}
	slots := 0.0
	for _, name := range slices.Sorted(maps.Keys(g.of)) {
		slots += g.of[name].has[0]
	}
	if slots > 0 {
		p.Busy = g.busy / (slots * g.every.Seconds())
	}
	for i, t := range w.order {
		share := 0.0
		if g.busy > 0 {
			share = g.shares[i] / g.busy
		}
		p.Shares = append(p.Shares, share)
		p.Depths = append(p.Depths, t.ready)
	}
	g.points = append(g.points, p)
	clear(g.shares)
	g.busy = 0
	g.next = g.next.Add(g.every)
}

// lags compare the service of each two tenants while both have ready work without a break: the worst
// over any span of time, of what their running tasks really took.
type lags struct {
	pairs map[[2]int]*pair
	most  map[[2]int]float64
}

// pair is the least and the most that one had got beyond the other.
type pair struct{ low, high float64 }

// look compares the weighted work done so far.
func (l *lags) look(order []*tenant) {
	for i, f := range order {
		for j, g := range order[i+1:] {
			at := [2]int{i, i + 1 + j}
			if f.ready == 0 || g.ready == 0 {
				delete(l.pairs, at)
				continue
			}
			d := f.work/f.Weight - g.work/g.Weight
			p := l.pairs[at]
			if p == nil {
				p = &pair{d, d}
				l.pairs[at] = p
			}
			p.low, p.high = min(p.low, d), max(p.high, d)
			l.most[at] = max(l.most[at], p.high-p.low)
		}
	}
}

// worst is the largest difference, measured in the largest task of each.
func (l *lags) worst(order []*tenant) float64 {
	worst := 0.0
	for at, d := range l.most { // any order: a maximum
		f, g := order[at[0]], order[at[1]]
		if unit := f.largest/f.Weight + g.largest/g.Weight; unit > 0 {
			worst = max(worst, d/unit)
		}
	}
	if math.IsNaN(worst) {
		return 0
	}
	return worst
}
