package estimate

import (
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"
)

func TestFollowedQuantiles(t *testing.T) {
	var q [3]int64
	Follow(&q, true, 2000)
	for range 20 {
		Follow(&q, false, 2000)
	}
	if q != [3]int64{2000, 2000, 2000} {
		t.Errorf("what never varies is %v", q)
	}
	for range 40 {
		Follow(&q, false, 200_000)
	}
	if q[0] < 180_000 {
		t.Errorf("what grew a hundredfold is %v after forty observations", q)
	}
	rng := rand.New(rand.NewPCG(5, 6))
	var sum [3]float64
	for i := range 4000 {
		Follow(&q, false, int64(1000*math.Exp(rng.NormFloat64()/2)))
		for k := range q {
			if i >= 1000 {
				sum[k] += float64(q[k]) / 3000
			}
		}
	}
	// The true ones are 1000, 1300 and 1898; one that steps by how far it is off lies nearer to the mean.
	if sum[0] < 850 || sum[0] > 1150 || sum[1] < 1050 || sum[1] > 1500 || sum[2] < 1300 || sum[2] > 2100 {
		t.Errorf("of a spread they are about %.0f", sum)
	}
}

func TestFollowedQuantilesRise(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var q [3]int64
		for i := range rapid.IntRange(1, 50).Draw(t, "n") {
			Follow(&q, i == 0, rapid.Int64Range(-5, 1<<40).Draw(t, "value"))
			if q[0] < 1 || q[0] > q[1] || q[1] > q[2] {
				t.Fatalf("they are %v", q)
			}
		}
	})
}
