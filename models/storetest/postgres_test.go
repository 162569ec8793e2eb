package storetest_test

import (
	"context"
	"testing"

	"nightshift/models"
	"nightshift/models/memory"
	"nightshift/models/postgres"
	"nightshift/models/postgres/pgtest"
	"nightshift/scheduler/engine"
)

// clocked is a store whose clock is the script's: only what is read with facts and snapshots tells the engine the time.
type clocked struct {
	engine.Store
	clock func() models.Instant
}

func (c clocked) Facts(ctx context.Context, need *models.Need) (*models.Facts, error) {
	facts, err := c.Store.Facts(ctx, need)
	if err == nil {
		facts.Now = c.clock()
	}
	return facts, err
}

func (c clocked) Load(ctx context.Context, heads, most int) (*models.Snapshot, error) {
	snapshot, err := c.Store.Load(ctx, heads, most)
	if err == nil {
		snapshot.Now = c.clock()
	}
	return snapshot, err
}

// The reference store and PostgreSQL give the same answers to the same scripts.
func TestPostgresAgreesWithMemory(t *testing.T) {
	agree(t, func(t *testing.T, clock func() models.Instant) (a, b engine.Store) {
		db, err := postgres.Open(t.Context(), postgres.Options{URL: pgtest.New(t), PoolSize: 2})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(db.Close)
		if err := db.Migrate(t.Context()); err != nil {
			t.Fatal(err)
		}
		writer := db.Writer()
		t.Cleanup(writer.Close)
		return memory.New(clock), clocked{writer, clock}
	})
}
