package fair

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

// Whoever idles or is blocked for however long gets, once back, at most what its weight gives it from then on, and two steps
// more; and nobody's time ever goes back by it.
func TestComingBackEarnsNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		clock := NewClock()
		weights := map[int32]float64{1: rapid.Float64Range(0.5, 9).Draw(t, "w1"), 2: rapid.Float64Range(0.5, 9).Draw(t, "w2")}
		cost := rapid.Float64Range(0.1, 5).Draw(t, "cost")
		blocked := rapid.Bool().Draw(t, "blocked")
		clock.Wake(1)
		clock.Wake(2)
		for range rapid.IntRange(0, 500).Draw(t, "alone") {
			clock.Start(1, cost, weights[1])
		}
		before := clock.Time(2)
		if blocked {
			clock.Unblock(2)
		} else {
			clock.Wake(2)
		}
		if clock.Time(2) < before {
			t.Fatalf("its time went back from %f to %f", before, clock.Time(2))
		}
		got := serve(clock, weights, func(int32) float64 { return cost }, rapid.IntRange(1, 100).Draw(t, "turns"))
		ahead := got[2]/weights[2] - got[1]/weights[1]
		if bound := cost/weights[1] + cost/weights[2] + 2*cost/min(weights[1], weights[2]); ahead > bound+1e-9 {
			t.Fatalf("since it came back it is %f ahead, %f is fair", ahead, bound)
		}
	})
}

// Whatever is charged ahead, once everything is settled a tenant was charged what it used, and its time has moved by that
// over its weight.
func TestWhatWasChargedAheadIsSettled(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		clock, weight := NewClock(), rapid.Float64Range(0.1, 10).Draw(t, "weight")
		sum := 0.0
		for range rapid.IntRange(1, 60).Draw(t, "tasks") {
			charged := clock.Span(rapid.Float64Range(0.01, 100).Draw(t, "expected"))
			clock.Start(1, charged, weight)
			for _, used := range rapid.SliceOfN(rapid.Float64Range(0, 200), 1, 4).Draw(t, "used") {
				clock.Correct(1, used-charged, weight)
				charged = used
			}
			sum += charged
		}
		if math.Abs(clock.Charged(1)-sum) > 1e-6 || math.Abs(clock.Time(1)-sum/weight) > 1e-6/weight+1e-6 {
			t.Fatalf("used %f, charged %f, its time is %f at weight %f", sum, clock.Charged(1), clock.Time(1), weight)
		}
	})
}
