package fair

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

// serve lets backlogged tenants take turns by virtual time and answers the seconds each got.
func serve(clock *Clock, weights map[int32]float64, costs func(tenant int32) float64, turns int) map[int32]float64 {
	got := map[int32]float64{}
	for range turns {
		next := int32(0)
		for tenant := int32(1); tenant <= int32(len(weights)); tenant++ {
			if next == 0 || clock.Time(tenant) < clock.Time(next) {
				next = tenant
			}
		}
		cost := costs(next)
		clock.Start(next, cost, weights[next])
		got[next] += cost
	}
	return got
}

func TestSharesFollowWeights(t *testing.T) {
	weights := map[int32]float64{1: 5, 2: 2, 3: 1}
	got := serve(NewClock(), weights, func(tenant int32) float64 { return []float64{0, 1, 3, 0.5}[tenant] }, 50_000)
	total := got[1] + got[2] + got[3]
	for tenant, weight := range weights {
		if share, want := got[tenant]/total, weight/8; math.Abs(share-want) > 0.002 {
			t.Errorf("tenant %d got %.4f, deserves %.4f", tenant, share, want)
		}
	}
}

func TestIdleTenantsEarnNothing(t *testing.T) {
	clock := NewClock()
	for range 1000 {
		clock.Start(1, 1, 1)
	}
	clock.Wake(2)
	got := serve(clock, map[int32]float64{1: 1, 2: 1}, func(int32) float64 { return 1 }, 100)
	if math.Abs(got[1]-got[2]) > 2 {
		t.Errorf("after idling tenant 2 got %.0f against %.0f", got[2], got[1])
	}
}

// The lag between two backlogged tenants stays within one task of each: the bound of start-time fair queueing.
func TestLagStaysWithinOneTaskOfEach(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		clock, weights := NewClock(), map[int32]float64{1: rapid.Float64Range(0.5, 9).Draw(t, "w1"), 2: rapid.Float64Range(0.5, 9).Draw(t, "w2")}
		got, most := map[int32]float64{}, map[int32]float64{}
		for range rapid.IntRange(1, 300).Draw(t, "turns") {
			next := int32(1)
			if clock.Time(2) < clock.Time(1) {
				next = 2
			}
			cost := rapid.Float64Range(0.01, 10).Draw(t, "cost")
			clock.Start(next, cost, weights[next])
			got[next], most[next] = got[next]+cost, max(most[next], cost)
			lag := math.Abs(got[1]/weights[1] - got[2]/weights[2])
			if bound := most[1]/weights[1] + most[2]/weights[2]; lag > bound+1e-9 {
				t.Fatalf("lag %f passes %f", lag, bound)
			}
		}
	})
}

func TestCorrectionsSettleToWhatWasUsed(t *testing.T) {
	clock := NewClock()
	clock.Start(1, 10, 2)
	clock.Correct(1, -7, 2)
	if clock.Charged(1) != 3 || clock.Time(1) != 1.5 {
		t.Errorf("charged %f at %f", clock.Charged(1), clock.Time(1))
	}
}

func TestTheUnblockedDoNotCatchUpAtEverybodysCost(t *testing.T) {
	clock, weights := NewClock(), map[int32]float64{1: 1, 2: 1}
	clock.Wake(1)
	clock.Wake(2)
	for range 1000 { // tenant 2 has work, but its lane is paused
		clock.Start(1, 1, 1)
	}
	clock.Unblock(2)
	got := serve(clock, weights, func(int32) float64 { return 1 }, 100)
	if got[2]-got[1] > 3 {
		t.Errorf("after its lane was resumed tenant 2 got %.0f against %.0f", got[2], got[1])
	}
}
