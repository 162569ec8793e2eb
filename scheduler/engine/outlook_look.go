package engine

import (
	"cmp"
	"slices"
	"time"

	"nightshift/models"
	"nightshift/scheduler/calendar"
	"nightshift/scheduler/forecast"
)

// LookAhead asks for what the rows of an environment's schedules can't tell of what is foreseen.
type LookAhead struct {
	Env      int32       `json:"env"`
	Works    [][2]int32  `json:"works,omitempty"`    // lanes with classes
	Flexible []models.ID `json:"flexible,omitempty"` // schedules
}

// Most of what one look ahead may ask for.
const (
	MostLookWorks    = 2_000
	MostLookFlexible = 2_000
)

// Ahead answers a LookAhead.
type Ahead struct {
	Pools       []string            `json:"pools"` // of the works, in their order
	Has         []PoolSlots         `json:"has"`   // the slots of workers that serve the environment, by pool
	Corrections []models.Correction `json:"corrections,omitempty"`
	Places      []Placed            `json:"places,omitempty"`
	Still       string              `json:"still,omitempty"` // why no schedule of the environment runs
}

// PoolSlots are the slots of a pool.
type PoolSlots struct {
	Pool string `json:"pool"`
	forecast.Capacity
}

// Placed is where an occurrence of a flexible schedule goes, by what is foreseen.
type Placed struct {
	Schedule models.ID      `json:"schedule"`
	At       models.Instant `json:"at"`
	After    models.Instant `json:"after"` // in microseconds
}

func (e *Engine) lookAhead(l *LookAhead) (*Ahead, error) {
	env := e.board.Envs[l.Env]
	if env == nil {
		return nil, models.Errorf(models.NotFound, "there is no such environment")
	}
	if len(l.Works) > MostLookWorks || len(l.Flexible) > MostLookFlexible {
		return nil, models.Errorf(models.InvalidRequest, "the look ahead asks for too much")
	}
	out := &Ahead{Pools: make([]string, len(l.Works)), Has: e.slotsOf(l.Env)}
	for i, w := range l.Works {
		lane := e.board.Lanes[w[0]]
		if lane != nil && lane.Env != l.Env {
			w = [2]int32{}
		}
		out.Pools[i] = e.poolOf(work{l.Env, w[0], w[1]})
	}
	names := map[string]bool{}
	for _, pool := range out.Pools {
		names[pool] = true
	}
	for _, c := range e.outlook.seen.Saved() {
		if names[c.Pool] {
			out.Corrections = append(out.Corrections, c)
		}
	}
	for _, id := range l.Flexible {
		if s := e.plans.all[id]; s != nil && s.Env == l.Env {
			for _, p := range s.places {
				out.Places = append(out.Places, Placed{id, p.at, p.after})
			}
		}
	}
	switch tenant := e.board.Tenants[env.Tenant]; {
	case env.Paused:
		out.Still = "the environment is paused"
	case tenant != nil && tenant.Suspended:
		out.Still = "the tenant is suspended"
	}
	return out, nil
}

// slotsOf are the slots of the workers that serve an environment, by pool.
func (e *Engine) slotsOf(env int32) []PoolSlots {
	pools := map[string]*forecast.Capacity{}
	for _, w := range e.board.Workers { // any order: sums
		var kinds forecast.Kinds
		for _, lane := range e.board.LanesOf(env) {
			kinds[lane.Kind] = kinds[lane.Kind] || e.there(w) && e.board.Serves(w, env, lane)
		}
		if kinds == (forecast.Kinds{}) {
			continue
		}
		has := pools[w.Pool]
		if has == nil {
			has = &forecast.Capacity{}
			pools[w.Pool] = has
		}
		for _, k := range models.Kinds() {
			if kinds[k] {
				has.For[k] += int64(w.SlotsFor(k))
			}
			if kinds[k] && w.KindSlots != nil {
				has.All += int64(w.SlotsFor(k))
			}
		}
		if w.KindSlots == nil {
			has.All += int64(w.Slots)
		}
	}
	out := make([]PoolSlots, 0, len(pools))
	for pool, has := range pools { // any order: sorted below
		out = append(out, PoolSlots{pool, *has})
	}
	slices.SortFunc(out, func(a, b PoolSlots) int { return cmp.Compare(a.Pool, b.Pool) })
	return out
}

// OwnPlace is where in its window a flexible schedule stands while nothing is foreseen.
func OwnPlace(s *models.Schedule) time.Duration {
	return calendar.Place(s.ID.Text(models.SchedulePrefix), int(s.Rule.FlexibleSeconds))
}

// LongestRun bounds how far back a forecast looks for runs that are still at work, in microseconds.
const LongestRun = models.Instant(longestRun)
