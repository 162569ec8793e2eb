package storetest_test

import (
	"fmt"
	"testing"

	"nightshift/models"
	"nightshift/models/memory"
	"nightshift/models/storetest"
	"nightshift/scheduler/engine"
)

const (
	seeds = 20
	ops   = 400
)

func twoOfMemory(_ *testing.T, clock func() models.Instant) (a, b engine.Store) {
	return memory.New(clock), memory.New(clock)
}

// Two reference stores agree, and the engine draws nothing from anywhere but its seed. Half the seeds run with a board
// that keeps two heads a line and twenty entries, moves three rows a slice and is given bodies staged from five tasks.
func TestMemoryAgreesWithItself(t *testing.T) { agree(t, twoOfMemory) }

func agree(t *testing.T, newStores func(t *testing.T, clock func() models.Instant) (a, b engine.Store)) {
	var all, small storetest.Counts
	most := uint64(seeds)
	if testing.Short() {
		most = 6
	}
	for seed := uint64(1); seed <= most; seed++ {
		tiny := seed%2 == 0
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			counts := storetest.Run(t, seed, ops, newStores, tiny)
			all.Add(counts)
			if tiny {
				small.Add(counts)
			}
		})
	}
	t.Logf("all seeds: %+v", all)
	t.Logf("small ones: %+v", small)
	if t.Failed() {
		return
	}
	for what, n := range map[string]int64{
		"refills": small.Refills, "shrinks": small.Shrinks, "parkings": small.Parkings, "unparkings": small.Unparkings,
		"rebuilds": small.Rebuilds, "takeovers": small.Takeovers, "staged": small.Staged, "leases lost": small.LeasesLost,
		"dead letters": small.DeadLetters, "skipped": small.Skipped, "expired": small.Expired, "cancelled": small.Cancelled,
	} {
		if n == 0 {
			t.Errorf("the small seeds had no %s: they show nothing of it", what)
		}
	}
}
