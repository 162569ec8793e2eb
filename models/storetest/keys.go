package storetest

import (
	"fmt"

	"nightshift/models"
	"nightshift/scheduler/board"
	"nightshift/scheduler/engine"
)

// keyed gives a task the keys that it needs to start: one, several, in order, of rates.
func (r *run) keyed(t *engine.NewTask) {
	var keys []models.TaskKey
	switch n := r.rng.IntN(20); {
	case n < 8:
		return
	case n < 14:
		keys = []models.TaskKey{r.oneKey()}
	default:
		seen := map[string]bool{}
		for range 1 + r.rng.IntN(3) {
			if k := r.oneKey(); !seen[k.Name] {
				seen[k.Name], keys = true, append(keys, k)
			}
		}
	}
	t.Ordered = r.chance(30)
	if r.chance(25) {
		for n := range 1 + r.rng.IntN(2) {
			keys = append(keys, models.TaskKey{Name: fmt.Sprintf("rate-%d", n+r.rng.IntN(2)*2)})
		}
		if r.chance(20) && !t.Ordered { // of rates alone
			keys = keys[len(keys)-1:]
		}
	}
	t.LimitKey, t.KeyLimit, t.MoreKeys = models.PackKeys(keys)
}

func (r *run) oneKey() models.TaskKey {
	return models.TaskKey{Name: fmt.Sprintf("key-%d", r.rng.IntN(4)), Limit: 1 + r.rng.Int32N(2)}
}

// rate sets, changes or lifts a rate limit.
func (r *run) rate() *engine.Command {
	ref := models.RateRef{Env: r.env(), Key: fmt.Sprintf("rate-%d", r.rng.IntN(4))}
	if r.chance(20) {
		return r.configure(&engine.Configure{DeleteRate: &ref, Action: "rate_limit.delete"})
	}
	limit := models.RateLimit{Env: ref.Env, Key: ref.Key, Limit: 1 + r.rng.Int64N(4), PerSeconds: 1 + r.rng.Int64N(40)}
	if r.chance(40) {
		limit.Burst = 1 + r.rng.Int64N(5)
	}
	return r.configure(&engine.Configure{Rate: &limit, Action: "rate_limit.put", Version: pick(r, []int64{0, 0, 0, 1})})
}

// KeyWatch is what the script sees of keys: whoever looks at the rows alone must find every limit held.
type KeyWatch struct {
	rows   map[models.TaskRef]models.Task // with keys, not final
	limits map[models.RateRef]models.RateLimit
	passed map[models.RateRef][]models.RatePass // since the limit was last set
	// Starts counts what was seen to start with several keys, in order, and under a rate.
	several, ordered, rated int64
}

func NewKeyWatch() *KeyWatch {
	return &KeyWatch{rows: map[models.TaskRef]models.Task{}, limits: map[models.RateRef]models.RateLimit{}, passed: map[models.RateRef][]models.RatePass{}}
}

func started(before, after *models.Task) bool {
	return after.State == models.Running && (before.State != models.Running || before.Attempt != after.Attempt)
}

// See holds a committed plan to what keys promise.
func (w *KeyWatch) See(p *models.Plan) error {
	for _, ref := range p.RatesGone {
		delete(w.limits, ref)
		delete(w.passed, ref)
	}
	for _, l := range p.Rates {
		ref := models.RateRef{Env: l.Env, Key: l.Key}
		w.limits[ref] = l
		delete(w.passed, ref)
	}
	before, starts := map[models.TaskRef]models.Task{}, []models.Task{}
	note := func(t models.Task) {
		ref := models.TaskRef{Env: t.Env, ID: t.ID}
		old := w.rows[ref]
		if before[ref] = old; !t.Keyed() {
			return
		}
		if started(&old, &t) {
			starts = append(starts, t)
		}
		if w.rows[ref] = t; t.State.Final() {
			delete(w.rows, ref)
		}
	}
	for _, t := range p.Tasks {
		note(t)
	}
	for _, c := range p.Changes {
		note(c.After)
	}
	if err := w.seeRates(p, starts); err != nil {
		return err
	}
	for i := range starts {
		if err := w.seeStart(&starts[i], before); err != nil {
			return err
		}
	}
	return w.seeHolders(starts)
}

// seeStart looks that no task started before one that became ready before it and is ready still.
func (w *KeyWatch) seeStart(t *models.Task, before map[models.TaskRef]models.Task) error {
	if t.MoreKeys != "" {
		w.several++
	}
	if !t.Has(models.Ordered) {
		return nil
	}
	w.ordered++
	for need := range t.Keys() {
		for ref, o := range w.rows { // any order: the first that was passed over will do
			was, changed := before[ref]
			if o.Env != t.Env || o.State != models.Ready || !o.Has(models.Ordered) || o.OrderKey >= t.OrderKey || heldElsewhere(&o) || changed && was.State != models.Ready || need.Limit != 1 {
				continue
			}
			for other := range o.Keys() {
				if other.Name == need.Name && !other.Rate() {
					return fmt.Errorf("task %x (%d) started before %x (%d), which is ready with the key %s", t.ID, t.OrderKey, o.ID, o.OrderKey, need.Name)
				}
			}
		}
	}
	return nil
}

// heldElsewhere says that a ready task waits for something else than its keys: it is passed over as one that is not ready.
func heldElsewhere(t *models.Task) bool {
	keyed, _ := board.KeyGate(t.Gate)
	return t.Gate != "" && !keyed
}

// seeHolders looks that no start gave a key more holders than the largest limit among them. An ordered task whose time for all
// attempts ends while it waits behind a holder becomes a holder beside it, and starts nothing.
func (w *KeyWatch) seeHolders(starts []models.Task) error {
	type key struct {
		env  int32
		name string
	}
	taken := map[key]bool{}
	for i := range starts {
		for need := range starts[i].Keys() {
			taken[key{starts[i].Env, need.Name}] = true
		}
	}
	holders, most := map[key]int32{}, map[key]int32{}
	for _, t := range w.rows { // any order: sums
		if !t.State.Live() && !t.HoldsIdle() {
			continue
		}
		for need := range t.Keys() {
			if !need.Rate() {
				k := key{t.Env, need.Name}
				holders[k]++
				most[k] = max(most[k], need.Limit)
			}
		}
	}
	for k, n := range holders { // any order: the first that is too much will do
		if taken[k] && n > most[k] {
			return fmt.Errorf("%d tasks hold the key %v, at most %d may", n, k, most[k])
		}
	}
	return nil
}

// seeRates looks that what passed is what started, and that no stretch of a rate's time has too much.
func (w *KeyWatch) seeRates(p *models.Plan, starts []models.Task) error {
	began := map[models.RateRef]int64{}
	for i := range starts {
		for need := range starts[i].Keys() {
			if ref := (models.RateRef{Env: starts[i].Env, Key: need.Name}); need.Rate() && w.limits[ref].Limit > 0 {
				began[ref]++
				w.rated++
			}
		}
	}
	for _, pass := range p.RatePasses {
		ref := models.RateRef{Env: pass.Env, Key: pass.Key}
		limit := w.limits[ref]
		if set := containsRate(p.Rates, ref); !set && pass.N != began[ref] {
			return fmt.Errorf("%d tasks started under the rate %v, %d were counted", began[ref], ref, pass.N)
		} else if set {
			pass.N = 0 // what passed before it was set may be more than it allows now
		}
		w.passed[ref] = append(w.passed[ref], pass)
		sum := int64(0)
		for _, old := range w.passed[ref] {
			if old.At > pass.At-models.Instant(limit.PerSeconds*1_000_000) {
				sum += old.N
			}
		}
		if sum > max(limit.Limit, limit.Burst) {
			return fmt.Errorf("%d tasks started within %d s under the rate %v, which lets %d", sum, limit.PerSeconds, ref, limit.Limit)
		}
		delete(began, ref)
	}
	for ref, n := range began { // any order: there should be none
		if !containsRate(p.Rates, ref) {
			return fmt.Errorf("%d tasks started under the rate %v, and nothing was counted", n, ref)
		}
	}
	return nil
}

func containsRate(rates []models.RateLimit, ref models.RateRef) bool {
	for _, l := range rates {
		if l.Env == ref.Env && l.Key == ref.Key {
			return true
		}
	}
	return false
}
