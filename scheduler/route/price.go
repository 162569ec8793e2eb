package route

import (
	"math"

	"nightshift/models"
)

// Use is how many tokens a run takes. Cached ones are part of In.
type Use struct{ In, Out, Cached float64 }

// What a run is taken to use while nobody has seen one: as much as a page of text and an answer to it.
var Prior = Use{In: 1_000, Out: 250}

// enough is how many runs must have been seen before they say alone what the next will use.
const enough = 5

// Expect is what a run will use: the caller's word for all of it, shared out like what was seen; else what was seen.
func Expect(tokens int64, seen models.ModelSeen) Use {
	use := Prior
	if total := seen.In + seen.Out; seen.Runs > 0 && total > 0 {
		w := math.Min(1, seen.Runs/enough)
		mix := func(prior, sum float64) float64 { return (1-w)*prior + w*sum/seen.Runs }
		use = Use{In: mix(Prior.In, seen.In), Out: mix(Prior.Out, seen.Out), Cached: mix(0, seen.Cached)}
	}
	use.Cached = math.Min(use.Cached, use.In)
	return use.scaled(tokens)
}

// scaled is so many tokens, shared out like these; 0: these themselves.
func (u Use) scaled(tokens int64) Use {
	all := u.In + u.Out
	if tokens <= 0 || all <= 0 {
		return u
	}
	k := float64(tokens) / all
	return Use{u.In * k, u.Out * k, u.Cached * k}
}

// Price is what so much costs on a model, in millionths of a dollar, rounded up; factor is that of the hour and of a batch.
func Price(m *models.Model, u Use, factor float64) int64 {
	cached := m.InputMicro
	if m.CachedMicro != nil {
		cached = *m.CachedMicro
	}
	whole := (u.In-u.Cached)*float64(m.InputMicro) + u.Cached*float64(cached) + u.Out*float64(m.OutputMicro)
	micro := math.Ceil(math.Max(0, whole)/1e6*math.Max(0, factor) - 1e-6)
	return int64(math.Min(micro, 1<<61))
}

// Factor is what a model's price is multiplied by: off its peak, and for what nobody waits for.
func Factor(m *models.Model, offPeak float64, batch bool) float64 {
	if batch {
		offPeak *= 1 - m.BatchDiscount
	}
	return offPeak
}
