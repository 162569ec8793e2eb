package sim

import (
	"cmp"
	"slices"

	"nightshift/models"
)

// RateSeen is what was seen of a rate limit: how many started in all, the most in any stretch of its time, and when the first
// and the last did, after the beginning.
type RateSeen struct {
	models.RateLimit
	Starts, Most int64
	First, Last  models.Instant
}

// rateWatch counts the starts under a rate beside the engine.
type rateWatch struct {
	limit  models.RateLimit
	starts []models.Instant // of the last stretch
	seen   RateSeen
}

// keys counts what is live under concurrency keys and what starts under rates, and looks whether that was allowed and in order.
func (w *World) keys(row *models.Task, n int32) {
	for need := range row.Keys() {
		key := holder{row.Env, need.Name}
		if need.Rate() {
			if rate := w.watch.rates[key]; rate != nil && n > 0 {
				w.passes(rate)
			}
			continue
		}
		w.watch.holding[key] += n
		if n < 0 {
			continue
		}
		if live := w.watch.holding[key]; live > need.Limit {
			w.violate("%d tasks hold the key %s, which allows %d", live, need.Name, need.Limit)
		}
		if row.OrderKey != 0 && need.Limit == 1 {
			if row.OrderKey < w.watch.order[key] {
				w.result.Counters["order_inversions"]++
				w.violate("a task of the key %s started after one that became ready later", need.Name)
			}
			w.watch.order[key] = max(w.watch.order[key], row.OrderKey)
		}
	}
}

// passes looks at one more start under a rate.
func (w *World) passes(r *rateWatch) {
	since := w.now - models.Instant(r.limit.PerSeconds*1_000_000)
	r.starts = append(slices.DeleteFunc(r.starts, func(at models.Instant) bool { return at <= since }), w.now)
	if most := max(r.limit.Limit, r.limit.Burst); int64(len(r.starts)) > most {
		w.violate("%d tasks started within %d s under the rate %s, which lets %d", len(r.starts), r.limit.PerSeconds, r.limit.Key, most)
	}
	if r.seen.Starts++; r.seen.Starts == 1 {
		r.seen.First = w.now - dawn
	}
	r.seen.Last, r.seen.Most = w.now-dawn, max(r.seen.Most, int64(len(r.starts)))
}

// ratesSeen are what was seen of rates, by key.
func (w *World) ratesSeen() (out []RateSeen) {
	for _, r := range w.watch.rates { // any order: sorted below
		seen := r.seen
		seen.RateLimit = r.limit
		out = append(out, seen)
	}
	slices.SortFunc(out, func(a, b RateSeen) int { return cmp.Or(cmp.Compare(a.Env, b.Env), cmp.Compare(a.Key, b.Key)) })
	return out
}
