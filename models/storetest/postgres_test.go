package storetest_test

import (
	"maps"
	"slices"
	"testing"

	"nightshift/models"
	"nightshift/models/memory"
	"nightshift/models/storetest"
	"nightshift/scheduler/engine"
)

// The reference store and PostgreSQL give the same answers to the same scripts, and no row of what stands beside tasks and runs
// is left out of the comparison.
func TestPostgresAgreesWithMemory(t *testing.T) {
	left := maps.Clone(storetest.Spoils)
	agree(t, *seeds, func(t *testing.T, clock func() models.Instant) (a, b engine.Store) {
		return storetest.BesidePostgres(t, memory.New(clock), clock, left)
	})
	if len(left) > 0 && !t.Failed() {
		t.Errorf("no script leaves rows of %v", slices.Sorted(maps.Keys(left)))
	}
}
