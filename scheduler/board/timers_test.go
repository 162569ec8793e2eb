package board

import (
	"testing"

	"nightshift/models"
)

// A task whose timer is due may leave its window and get another timer before the due one is settled: that one stays known.
func TestSettlingATimerForgetsNoOther(t *testing.T) {
	b := New(DefaultLimits())
	b.horizon = 1_000
	row := models.Task{Env: 1, ID: models.ID{1}, State: models.Scheduled, WakeAt: 10}
	b.Watch(&row)
	due := b.DueBy(10)
	if due == nil {
		t.Fatal("nothing is due")
	}
	row.State, row.WakeAt = models.Ready, 0
	b.Watch(&row) // it stands beyond its window
	row.ExpiresAt = 500
	b.Watch(&row)
	b.Settle(due)
	if b.Held(row.ID) == nil {
		t.Fatal("the task is forgotten, and its timer goes off all the same")
	}
	row.State = models.Cancelled
	b.Watch(&row)
	if again := b.DueBy(1_000); again != nil {
		t.Fatalf("the timer of a cancelled task goes off: %+v", again.Row)
	}
}
