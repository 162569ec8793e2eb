package storetest_test

import (
	"flag"
	"fmt"
	"testing"

	"nightshift/models"
	"nightshift/models/memory"
	"nightshift/models/storetest"
	"nightshift/scheduler/engine"
)

const ops = 400

var (
	seeds = flag.Uint64("seeds", 20, "how many scripts are drawn")
	alone = flag.Uint64("alone", 6, "how many of them two reference stores are told")
)

func twoOfMemory(_ *testing.T, clock func() models.Instant) (a, b engine.Store) {
	return memory.New(clock), memory.New(clock)
}

// Two reference stores agree, and the engine draws nothing from anywhere but its seed. Half the seeds run with a board
// that keeps two heads a line and twenty entries, moves three rows a slice and is given bodies staged from five tasks. The
// scripts are those that PostgreSQL is told beside a reference store, where two engines decide as well: a few of them do.
func TestMemoryAgreesWithItself(t *testing.T) { agree(t, *alone, twoOfMemory) }

const few = 6

func agree(t *testing.T, most uint64, newStores func(t *testing.T, clock func() models.Instant) (a, b engine.Store)) {
	var all, small storetest.Counts
	if testing.Short() {
		most = few
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
	rare := map[string]bool{"spending of budgets": true, "spending that was presumed": true, "tasks held by budgets": true, "next better models": true, "models chosen anew": true, "breakers": true} // too rare for a few seeds
	if all.LanesHeld == 0 || all.LanesFreed == 0 {
		t.Errorf("%d lanes were held and %d let go: the seeds show nothing of it", all.LanesHeld, all.LanesFreed)
	}
	for what, n := range map[string]int64{
		"labels": all.Labels, "watermarks": all.Watermarks, "dedupe keys": all.Dedupes, "signals": all.Signals, "judgements": all.Judgements,
		"messages": all.Messages, "marks of feeds": all.Marks, "takes": all.Takes,
	} {
		if n == 0 {
			t.Errorf("the seeds left no %s to compare", what)
		}
	}
	for what, n := range map[string]int64{
		"refills": small.Refills, "shrinks": small.Shrinks, "parkings": small.Parkings, "unparkings": small.Unparkings, "spending of budgets": small.Spends, "spending that was presumed": small.Presumed, "tasks held by budgets": small.Held,
		"rebuilds": small.Rebuilds, "takeovers": small.Takeovers, "staged": small.Staged, "bodies added to workflows": small.Grown, "leases lost": small.LeasesLost,
		"dead letters": small.DeadLetters, "skipped": small.Skipped, "expired": small.Expired, "cancelled": small.Cancelled, "starts with several keys": small.SeveralKeys, "starts in order": small.Ordered, "starts under a rate": small.Rated,
		"models chosen": small.Chosen, "models chosen anew": small.Rechosen, "choices of no model": small.Unchosen, "next better models": small.Climbed, "breakers": small.Breakers,
	} {
		if n == 0 && !(most <= few && rare[what]) {
			t.Errorf("the small seeds had no %s: they show nothing of it", what)
		}
	}
}
