package memory

import (
	"cmp"
	"slices"

	"nightshift/models"
)

// keyRows are what tasks with several keys, an order or a rate need beside their rows.
type keyRows struct {
	ordered  indexed[orderedKey, models.Mark] // parked, by their place in the order
	standing *order[models.TaskRef]           // ready, ungated, with more keys than one or an order
	idle     *order[models.TaskRef]           // ordered ones that hold their keys without running
	limits   map[models.RateRef]models.RateLimit
	passes   map[models.RateRef][]passedIn // by batch
}

type passedIn struct {
	batch int64
	models.RatePass
}

type orderedKey struct {
	env  int32
	gate string
}

func newKeyRows() keyRows {
	return keyRows{
		ordered: newIndexed[orderedKey](compareMarks), standing: newOrder(compareRefs), idle: newOrder(compareRefs),
		limits: map[models.RateRef]models.RateLimit{}, passes: map[models.RateRef][]passedIn{},
	}
}

// rates writes rate limits and what passed under them.
func (s *Store) rates(p *models.Plan) {
	for _, ref := range p.RatesGone {
		delete(s.limits, ref)
		delete(s.passes, ref)
	}
	for _, l := range p.Rates {
		s.limits[models.RateRef{Env: l.Env, Key: l.Key}] = l
	}
	for _, pass := range p.RatePasses {
		ref := models.RateRef{Env: pass.Env, Key: pass.Key}
		s.passes[ref] = append(s.passes[ref], passedIn{p.Batch, pass})
	}
}

// RateLimits are those of an environment, by key.
func (s *Store) RateLimits(env int32) (out []models.RateLimit) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range sorted(s.limits, compareRates) {
		if l.Env == env {
			out = append(out, l)
		}
	}
	return out
}

func keysOf(t *models.Task) models.KeyText {
	return models.KeyText{LimitKey: t.LimitKey, KeyLimit: t.KeyLimit, MoreKeys: t.MoreKeys, Ordered: t.Has(models.Ordered)}
}

func (s *Store) loadKeys(out *models.Snapshot) {
	for _, t := range s.all(s.standing) {
		out.Standing = append(out.Standing, models.StandingTask{Line: lineOf(&t), ID: t.ID, Keys: keysOf(&t), OrderKey: t.OrderKey})
	}
	for _, t := range s.all(s.idle) {
		out.Idle = append(out.Idle, models.IdleHolder{Env: t.Env, ID: t.ID, Since: t.StartedAt, Keys: keysOf(&t)})
	}
	for _, l := range sorted(s.limits, compareRates) {
		out.Rates = append(out.Rates, s.rateState(l))
	}
}

// rateState sums up what passed within the rate's time before the last that did.
func (s *Store) rateState(l models.RateLimit) models.RateState {
	state := models.RateState{RateLimit: l}
	passes := s.passes[models.RateRef{Env: l.Env, Key: l.Key}]
	if len(passes) == 0 {
		return state
	}
	last := passes[len(passes)-1]
	state.Credit, state.At = last.Credit, last.At
	slice := func(at models.Instant) int64 { return int64(at) / l.SliceLength() }
	for _, p := range passes {
		n := len(state.Passes)
		switch {
		case p.batch < l.FromBatch || p.N == 0 || slice(p.At) < slice(last.At-models.Instant(l.PerSeconds*1_000_000)):
		case n > 0 && slice(state.Passes[n-1].At) == slice(p.At):
			state.Passes[n-1].At = max(state.Passes[n-1].At, p.At)
			state.Passes[n-1].N += p.N
		default:
			state.Passes = append(state.Passes, models.RateSum{At: p.At, N: p.N})
		}
	}
	return state
}

func compareRates(a, b models.RateRef) int {
	return cmp.Or(cmp.Compare(a.Env, b.Env), cmp.Compare(a.Key, b.Key))
}

// Passed is how many tasks started under a rate limit, over all that is kept.
func (s *Store) Passed(ref models.RateRef) (n int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for p := range slices.Values(s.passes[ref]) {
		n += p.N
	}
	return n
}
