package engine

import (
	"cmp"
	"maps"
	"slices"
	"sort"

	"nightshift/models"
	"nightshift/scheduler/board"
)

// KindFigures are a kind's.
type KindFigures struct {
	Kind    string    `json:"kind"`
	Ready   int64     `json:"ready"`
	Running int64     `json:"running"`
	Parked  int64     `json:"parked"`
	Held    int64     `json:"held"` // of the ready ones, those that a hold keeps from starting anywhere
	Wait    Histogram `json:"wait"` // seconds from ready to the first start
	Run     Histogram `json:"run"`  // seconds of attempts that ended, however they did
}

// LaneFigures are those of a kind's first lanes, summed over environments, or, as "other", of all its other lanes.
type LaneFigures struct {
	Kind   string  `json:"kind"`
	Lane   string  `json:"lane"`
	Depth  int64   `json:"depth"`          // ready, parked ones among them
	Oldest float64 `json:"oldest_seconds"` // how long the oldest head has been ready
}

// PoolFigures are those of a pool.
type PoolFigures struct {
	Pool      string  `json:"pool"`
	Slots     int64   `json:"slots"`
	SlotsBusy int64   `json:"slots_busy"`
	Cards     int64   `json:"cards"`
	CardsBusy int64   `json:"cards_busy"`
	Lag       float64 `json:"lag"` // how far apart the virtual times are of tenants whose work waits for it
}

// TypeCounts count tasks of one type in a kind since this brain began.
type TypeCounts struct {
	Kind         string `json:"kind"`
	Type         string `json:"type"`
	Submitted    int64  `json:"submitted"`
	Started      int64  `json:"started"`
	Succeeded    int64  `json:"succeeded"`
	Failed       int64  `json:"failed"`
	Retried      int64  `json:"retried"`
	DeadLettered int64  `json:"dead_lettered"`
	Expired      int64  `json:"expired"`
	Cancelled    int64  `json:"cancelled"`
	Skipped      int64  `json:"skipped"`
}

// ModelUse is what attempts reported of a model since this brain began, and what they had been said to cost.
type ModelUse struct {
	Model        string  `json:"model"`
	TokensIn     int64   `json:"tokens_in"`
	TokensOut    int64   `json:"tokens_out"`
	TokensCached int64   `json:"tokens_cached"`
	CostUSD      float64 `json:"cost_usd"`
	EstimatedUSD float64 `json:"estimated_usd"` // that they were said to cost
}

// Histogram counts observations at or below each bound; what is above the last bound is in Count alone.
type Histogram struct {
	Bounds []float64 `json:"bounds"`
	Counts []uint64  `json:"counts"` // cumulative, beside Bounds
	Count  uint64    `json:"count"`
	Sum    float64   `json:"sum"`
}

func histogram(bounds ...float64) Histogram {
	return Histogram{Bounds: bounds, Counts: make([]uint64, len(bounds))}
}

func (h *Histogram) observe(v float64) {
	for i := sort.SearchFloat64s(h.Bounds, v); i < len(h.Bounds); i++ {
		h.Counts[i]++
	}
	h.Count++
	h.Sum += v
}

func (h Histogram) copied() Histogram {
	h.Counts = slices.Clone(h.Counts)
	return h
}

// figures fills in what kinds, lanes and pools look like now: one pass over the lanes and one over the lines.
func (e *Engine) figures(s *Stats) {
	kinds := [4]KindFigures{}
	lanes := [4][2]LaneFigures{}
	for k := range kinds {
		name := models.KindName(k).String()
		kinds[k] = KindFigures{Kind: name, Ready: e.board.ReadyOf(models.KindName(k)), Wait: e.counters.waits[k].copied(), Run: e.counters.runs[k].copied()}
		lanes[k] = [2]LaneFigures{{Kind: name, Lane: name}, {Kind: name, Lane: otherName}}
	}
	for _, lane := range e.board.Lanes { // any order: sums
		kinds[lane.Kind].Running += int64(lane.Running)
		kinds[lane.Kind].Parked += lane.Parked
		lanes[lane.Kind][rowOf(lane)].Depth += lane.Depth + lane.Parked
	}
	for _, kind := range models.Kinds() {
		for _, q := range e.board.Queues(kind) {
			for _, line := range q.Lines {
				lane, head := e.board.Lanes[line.ID.Lane], line.Head()
				if e.board.HeldLine(line) {
					kinds[kind].Held += line.Ready
				}
				if lane == nil || head == nil {
					continue
				}
				row := &lanes[lane.Kind][rowOf(lane)]
				row.Oldest = max(row.Oldest, e.now.Sub(head.Row.ReadyAt).Seconds())
			}
		}
	}
	s.Messages = e.messageFigures()
	s.Kinds = kinds[:]
	for k := range lanes {
		s.Lanes = append(s.Lanes, lanes[k][:]...)
	}
	s.Pools = e.poolFigures()
}

// rowOf is 0 for one of the lanes an environment starts with, 1 for any other.
func rowOf(lane *board.Lane) int {
	if lane.First && lane.Name == lane.Kind.String() {
		return 0
	}
	return 1
}

// mostPools is how many pools are shown under their own names; a pool is whatever a worker says.
const mostPools = 50

// poolFigures lists the pools by name, the largest on their own and the rest as one.
func (e *Engine) poolFigures() []PoolFigures {
	workers := map[string][]*board.Worker{}
	for _, w := range e.board.Workers { // any order: sums
		workers[w.Pool] = append(workers[w.Pool], w)
	}
	names := slices.Sorted(maps.Keys(workers))
	slices.SortStableFunc(names, func(a, b string) int { return cmp.Compare(e.board.Pools[b].Slots, e.board.Pools[a].Slots) })
	var out []PoolFigures
	rest := PoolFigures{Pool: otherName}
	for i, name := range names {
		p := PoolFigures{Pool: name, Slots: e.board.Pools[name].Slots, Cards: e.board.Pools[name].Cards}
		for _, w := range workers[name] {
			p.SlotsBusy += int64(len(w.Leases))
			for _, used := range w.Use.VRAMMB {
				if used > 0 {
					p.CardsBusy++
				}
			}
		}
		if i < mostPools && name != otherName {
			p.Lag = e.lag(name, workers[name])
			out = append(out, p)
			continue
		}
		rest.Slots, rest.SlotsBusy, rest.Cards, rest.CardsBusy = rest.Slots+p.Slots, rest.SlotsBusy+p.SlotsBusy, rest.Cards+p.Cards, rest.CardsBusy+p.CardsBusy
	}
	if rest.Slots > 0 {
		out = append(out, rest)
	}
	return out
}

// lag is how far the pool is from fair: the largest distance, over the kinds it has started lately, between the virtual
// times of two tenants that have something for it, in weighted seconds of the pool.
func (e *Engine) lag(pool string, workers []*board.Worker) float64 {
	recent := e.starts[pool]
	if recent == nil {
		return 0
	}
	fits := map[int32]bool{}
	serves := func(class int32) bool {
		ok, known := fits[class]
		if !known {
			ok = slices.ContainsFunc(workers, func(w *board.Worker) bool { return e.board.Fits(w, class) })
			fits[class] = ok
		}
		return ok
	}
	worst := 0.0
	for _, kind := range models.Kinds() {
		if recent.counts[kind] == 0 {
			continue // nobody has a time there, and asking would make a clock
		}
		clock, low, high, some := e.board.Clock(pool, kind), 0.0, 0.0, false
		for _, q := range e.board.Queues(kind) {
			if !slices.ContainsFunc(q.Lines, func(l *board.Line) bool { return l.Head() != nil && serves(l.ID.Class) && e.board.Gate(l) == "" }) {
				continue
			}
			at := clock.Time(q.Tenant)
			if !some {
				low, high, some = at, at, true
			}
			low, high = min(low, at), max(high, at)
		}
		worst = max(worst, high-low)
	}
	return worst
}
