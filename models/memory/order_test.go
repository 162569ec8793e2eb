package memory

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"
)

// An order holds what a sorted slice without doubles would hold, over many cuts and emptied pieces.
func TestOrderIsASortedSet(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	o, model := newOrder(cmp.Compare[int]), map[int]bool{}
	for range 40_000 {
		k := rng.IntN(6_000)
		if rng.IntN(5) < 3 {
			o.add(k)
			model[k] = true
		} else {
			o.remove(k)
			delete(model, k)
		}
	}
	want := make([]int, 0, len(model))
	for k := range model {
		want = append(want, k)
	}
	slices.Sort(want)
	if got := slices.Collect(o.all()); !slices.Equal(got, want) || o.size() != len(want) {
		t.Fatalf("%d keys, want %d", len(got), len(want))
	}
	for range 200 {
		k := rng.IntN(6_000)
		at, found := slices.BinarySearch(want, k)
		if found {
			at++
		}
		if got := slices.Collect(o.above(k)); !slices.Equal(got, want[at:]) {
			t.Fatalf("above %d: %d keys, want %d", k, len(got), len(want)-at)
		}
	}
	for k := range model {
		o.remove(k)
	}
	if o.size() != 0 || len(o.pieces) != 0 {
		t.Fatalf("%d keys in %d pieces are left", o.size(), len(o.pieces))
	}
}
