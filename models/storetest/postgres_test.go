package storetest_test

import (
	"testing"

	"nightshift/models"
	"nightshift/models/memory"
	"nightshift/models/storetest"
	"nightshift/scheduler/engine"
)

// The reference store and PostgreSQL give the same answers to the same scripts.
func TestPostgresAgreesWithMemory(t *testing.T) {
	agree(t, func(t *testing.T, clock func() models.Instant) (a, b engine.Store) {
		return storetest.BesidePostgres(t, memory.New(clock), clock)
	})
}
