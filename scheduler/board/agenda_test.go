package board

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"

	"nightshift/models"
)

func TestAgendaKeepsTheOrderOfMoments(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 7))
	var a Agenda
	want := map[models.ID]models.Instant{}
	for range 5_000 {
		id := models.ID{byte(rng.IntN(200))}
		at := models.Instant(rng.IntN(50))
		a.Set(id, at)
		if want[id] = at; at == 0 {
			delete(want, id)
		}
		now, most := models.Instant(rng.IntN(60)), 1+rng.IntN(40)
		var due []models.ID
		for id, at := range want { // any order: sorted below
			if at <= now {
				due = append(due, id)
			}
		}
		slices.SortFunc(due, func(x, y models.ID) int { return cmp.Or(cmp.Compare(want[x], want[y]), x.Compare(y)) })
		if got := a.Due(now, most); !slices.Equal(got, due[:min(most, len(due))]) {
			t.Fatalf("due by %d: %v, want %v", now, got, due)
		}
	}
	if a.Len() != len(want) {
		t.Errorf("%d entries, want %d", a.Len(), len(want))
	}
}
