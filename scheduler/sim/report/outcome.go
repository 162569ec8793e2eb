package report

import (
	"time"

	"nightshift/scheduler/sim"
)

// outcome is a result as JSON shows it.
type outcome struct {
	Hash             string             `json:"hash"`
	LivedSeconds     float64            `json:"lived_seconds"`
	MakespanSeconds  float64            `json:"makespan_seconds"`
	ContendedSeconds float64            `json:"contended_seconds"`
	Shares           map[string]float64 `json:"shares"`
	Jain             float64            `json:"jain"`
	Inversions       int64              `json:"order_inversions"`
	Arrivals         []flow             `json:"arrivals"`
	Pools            []pool             `json:"pools"`
	Tenants          []string           `json:"tenants"`
	Timeline         []point            `json:"timeline"`
	Counters         map[string]int64   `json:"counters"`
	Violations       []string           `json:"violations"`
}

type flow struct {
	Name      string `json:"name"`
	Tenant    string `json:"tenant"`
	Tasks     int    `json:"tasks"`
	Ended     int    `json:"ended"`
	Refused   int    `json:"refused"`
	Wait      wait   `json:"wait_seconds"`
	Deadlines int    `json:"deadlines"`
	Missed    int    `json:"deadlines_missed"`
}

type wait struct {
	Mean float64 `json:"mean"`
	P50  float64 `json:"p50"`
	P99  float64 `json:"p99"`
	Most float64 `json:"longest"`
}

type pool struct {
	Name        string  `json:"name"`
	Slots       int64   `json:"slots"`
	Utilization float64 `json:"utilization"`
	Contended   float64 `json:"utilization_while_waiting"`
}

type point struct {
	At     float64   `json:"at_seconds"`
	Busy   float64   `json:"utilization"`
	Ready  int64     `json:"ready"`
	Parked int64     `json:"parked"`
	Shares []float64 `json:"shares"`
	Depths []int64   `json:"depths"`
}

func (r *Report) outcome(from *sim.Result) outcome {
	out := outcome{
		Hash: from.Hash, LivedSeconds: from.Lived.Seconds(), MakespanSeconds: from.Makespan.Seconds(), ContendedSeconds: from.Contended.Seconds(),
		Shares: from.Shares, Jain: from.Jain, Inversions: from.Inversions, Tenants: r.Tenants, Counters: from.Counters,
		Arrivals: []flow{}, Pools: []pool{}, Timeline: []point{}, Violations: append([]string{}, from.Violations...),
	}
	for _, f := range from.Flows {
		out.Arrivals = append(out.Arrivals, flow{
			Name: f.Name, Tenant: f.Tenant, Tasks: f.Tasks, Ended: f.Ended, Refused: f.Refused, Deadlines: f.Deadlines, Missed: f.Missed,
			Wait: wait{s(f.Wait.Mean), s(f.Wait.P50), s(f.Wait.P99), s(f.Wait.Most)},
		})
	}
	for _, p := range from.Pools {
		out.Pools = append(out.Pools, pool(p))
	}
	for _, p := range from.Timeline {
		out.Timeline = append(out.Timeline, point{s(p.At), p.Busy, p.Ready, p.Parked, p.Shares, p.Depths})
	}
	return out
}

func s(d time.Duration) float64 { return d.Seconds() }
