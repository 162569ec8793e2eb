package estimate

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"nightshift/models"
)

func TestNothingSeenGivesThePrior(t *testing.T) {
	b := NewBook()
	if b.Mean(1, 1) != Prior || b.Quantile(1, 1, 0.95) != Prior {
		t.Fatal("an unseen class has the prior")
	}
	b.Saw(1, 1, 4)
	if b.Mean(2, 1) != Prior || b.Mean(1, 2) != Prior {
		t.Fatal("one tenant's class says nothing of another's")
	}
}

func TestQuantilesAreWithinABucketOfTheTruth(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	h, all := &Histogram{}, []float64{}
	for range 1000 {
		s := math.Exp(rng.NormFloat64() + 3)
		h.Saw(s)
		all = append(all, s)
	}
	slices.Sort(all)
	for _, q := range []float64{0.5, 0.7, 0.95, 0.99} {
		truth, got := all[int(math.Ceil(q*1000))-1], h.Quantile(q)
		if got < truth*0.999 || got > truth*math.Exp2(1.0/perOctav)*1.001 {
			t.Errorf("q%.0f is %.2f, the truth is %.2f", q*100, got, truth)
		}
	}
}

func TestOldObservationsFade(t *testing.T) {
	h := &Histogram{}
	for range 5000 {
		h.Saw(1)
	}
	for range 5000 {
		h.Saw(100)
	}
	if got := h.Quantile(0.5); got < 99 {
		t.Errorf("the median still is %.1f after 5,000 runs of 100 s", got)
	}
}

func TestQuantilesGrowWithTheirShare(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := &Histogram{}
		for range rapid.IntRange(1, 200).Draw(t, "n") {
			h.Saw(rapid.Float64Range(0, 1e7).Draw(t, "seconds"))
		}
		last := 0.0
		for q := 0.05; q <= 1; q += 0.05 {
			if got := h.Quantile(q); got < last {
				t.Fatalf("q%.2f is %f, below %f", q, got, last)
			} else {
				last = got
			}
		}
	})
}

func TestWhatIsSavedComesBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := NewBook()
		for range rapid.IntRange(1, 300).Draw(t, "n") {
			b.Saw(rapid.Int32Range(1, 3).Draw(t, "tenant"), rapid.Int32Range(1, 3).Draw(t, "class"), rapid.Float64Range(0.001, 1e5).Draw(t, "seconds"))
		}
		saved := b.Changes(100)
		if again := b.Changes(100); len(again) != 0 {
			t.Fatalf("%d are told as changed twice", len(again))
		}
		fresh := NewBook()
		fresh.Restore(saved)
		for tenant := int32(1); tenant <= 3; tenant++ {
			for class := int32(1); class <= 3; class++ {
				if got, want := fresh.Quantile(tenant, class, 0.7), b.Quantile(tenant, class, 0.7); got != want {
					t.Fatalf("q70 of %d, %d came back as %f, not %f", tenant, class, got, want)
				}
			}
		}
	})
	b := NewBook()
	b.Restore([]models.Estimate{{Tenant: 1, Class: 1, Counts: []byte{1}}, {Tenant: 1, Class: 2, Counts: make([]byte, 4*buckets)}})
	if b.Mean(1, 1) != Prior || b.Mean(1, 2) != Prior {
		t.Error("what cannot be read was taken for an estimate")
	}
}

func TestTasksThatAllCostTheSameAreKnownExactly(t *testing.T) {
	b := NewBook()
	for range 3000 { // longer than all counts whole
		b.Spent(1, 1, 1234, 100_000)
		b.Spent(1, 2, 10, 100_000)
	}
	b.Spent(1, 2, 5000, 9_000_000) // one that is far from the rest
	other := NewBook()
	other.Restore(b.Changes(10))
	for _, b := range []*Book{b, other} {
		tokens, _ := b.Tokens(1, 1, 0.7)
		if micro, _ := b.Cost(1, 1, 0.7); micro != 100_000 || tokens != 1234 {
			t.Errorf("they are expected to cost %d, and %d tokens", micro, tokens)
		}
		if micro, _ := b.Cost(1, 2, 0.7); micro < 100_000 || micro > 125_000 {
			t.Errorf("one that is dear makes the rest cost %d", micro)
		}
	}
}

func TestUsesAreKeptBesideRunTimes(t *testing.T) {
	b := NewBook()
	if _, ok := b.Cost(1, 1, 0.7); ok {
		t.Fatal("nothing is known of what nobody reported")
	}
	for i := range 100 {
		b.Saw(1, 1, 4)
		b.Spent(1, 1, int64(1000+i), 250_000)
		b.Saw(1, 2, 4)
		b.Spent(1, 2, 0, 0) // it says nothing
		b.Spent(1, 3, 500, 0)
	}
	other := NewBook()
	other.Restore(b.Changes(10))
	for _, b := range []*Book{b, other} {
		tokens, ok := b.Tokens(1, 1, 0.7)
		if !ok || tokens < 1070 || tokens > 1070*5/4 {
			t.Errorf("q70 of the tokens is %d", tokens)
		}
		if micro, ok := b.Cost(1, 1, 0.7); !ok || micro < 250_000 || micro > 250_000*5/4 {
			t.Errorf("q70 of the cost is %d", micro)
		}
		if got := b.Quantile(1, 1, 0.7); got < 4 || got > 5 {
			t.Errorf("q70 of the run time is %.2f", got)
		}
		if _, ok := b.Cost(1, 2, 0.7); ok {
			t.Error("a task that reports no use says nothing of it")
		}
		if micro, ok := b.Cost(1, 3, 0.7); !ok || micro != 0 {
			t.Errorf("tokens without a price cost %d", micro)
		}
		if got := b.Quantile(1, 3, 0.7); got != Prior {
			t.Errorf("a run time nobody saw is %.2f", got)
		}
	}
}

// What can't be read is forgotten, never half taken in.
func TestForeignFormsAreNoEstimates(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := NewBook()
		b.Restore([]models.Estimate{{Tenant: 1, Class: 1, Counts: rapid.SliceOfN(rapid.Byte(), 0, 600).Draw(t, "saved")}})
		b.Quantile(1, 1, 0.9)
		b.Cost(1, 1, 0.9)
		b.Tokens(1, 1, 0.9)
		b.Saw(1, 1, 1)
	})
}

// A class that was never seen takes as long as others of its type and model, of the same tenant, did; once it was seen itself
// that goes first.
func TestANewClassIsTakenForItsLike(t *testing.T) {
	b := NewBook()
	for class, of := range map[int32][2]string{1: {"train", "large"}, 2: {"train", "large"}, 3: {"train", "small"}, 4: {"clean", "large"}} {
		b.Knows(class, of[0], of[1])
	}
	for range 40 {
		b.Saw(1, 1, 600)
	}
	again := NewBook()
	for class := range int32(4) {
		again.Knows(class+1, []string{"train", "train", "train", "clean"}[class], []string{"large", "large", "small", "large"}[class])
	}
	again.Restore(b.Changes(10))
	for name, b := range map[string]*Book{"as it was seen": b, "restored": again} {
		if got := b.Quantile(1, 2, 0.7); got < 600 || got > 720 {
			t.Errorf("%s: q70 of its like is %.0f", name, got)
		}
		if got := b.Mean(1, 2); got < 500 || got > 720 {
			t.Errorf("%s: the mean of its like is %.0f", name, got)
		}
		for what, got := range map[string]float64{"another model": b.Mean(1, 3), "another type": b.Mean(1, 4), "another tenant": b.Mean(2, 2), "nobody knows": b.Mean(1, 9)} {
			if got != Prior {
				t.Errorf("%s: %s takes %.0f", name, what, got)
			}
		}
		if b.Saw(1, 2, 5); b.Mean(1, 2) != 5 {
			t.Errorf("%s: seen itself, it takes %.1f", name, b.Mean(1, 2))
		}
		b.Saw(1, 9, 3)
		if b.Mean(1, 8) != Prior {
			t.Errorf("%s: two that nobody knows were taken for alike", name)
		}
	}
}
