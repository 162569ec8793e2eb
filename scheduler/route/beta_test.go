package route

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"nightshift/models"
)

func TestQuantilesOfKnownDistributions(t *testing.T) {
	for _, c := range []struct{ p, a, b, want float64 }{
		{0.1, 1, 1, 0.1},                // even
		{0.1, 2, 1, math.Sqrt(0.1)},     // x²
		{0.5, 7, 7, 0.5},                // as much on both sides
		{0.25, 0.5, 0.5, 0.14644660941}, // sin²(πp/2)
	} {
		if got := quantile(c.p, c.a, c.b); math.Abs(got-c.want) > 1e-9 {
			t.Errorf("q%v of Beta(%v, %v) is %v, want %v", c.p, c.a, c.b, got, c.want)
		}
	}
}

// The share below the quantile is what was asked for, as drawing says too.
func TestAQuantileHasItsShareBelowIt(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, c := range [][2]int{{95, 5}, {3, 9}, {40, 1}} {
		draws := make([]float64, 20_000)
		for i := range draws { // the a-th smallest of a+b-1 even draws is Beta(a, b)
			all := make([]float64, c[0]+c[1]-1)
			for j := range all {
				all[j] = rng.Float64()
			}
			slices.Sort(all)
			draws[i] = all[c[0]-1]
		}
		slices.Sort(draws)
		if got, want := quantile(0.1, float64(c[0]), float64(c[1])), draws[len(draws)/10]; math.Abs(got-want) > 0.01 {
			t.Errorf("q10 of Beta(%d, %d) is %v, drawing says %v", c[0], c[1], got, want)
		}
	}
}

func TestALowQuantileIsBelowTheWordAndLearns(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		said := rapid.Float64Range(0.01, 0.99).Draw(t, "said")
		judged := float64(rapid.IntRange(0, 900).Draw(t, "judged"))
		good := judged * rapid.Float64Range(0, 1).Draw(t, "share")
		low := Low(said, true, good, judged)
		if mean := (said*Strength + good) / (Strength + judged); low < 0 || low > mean {
			t.Fatalf("low is %v, the mean %v", low, mean)
		}
		if better := Low(said, true, good+1, judged+1); better < low-1e-9 {
			t.Fatalf("one good result more took it from %v to %v", low, better)
		}
		if worse := Low(said, true, good, judged+1); worse > low+1e-9 {
			t.Fatalf("one bad result more took it from %v to %v", low, worse)
		}
	})
	if Low(1, true, 0, 0) != 1 || Low(0, true, 0, 0) != 0 {
		t.Error("a certain word stands while nobody has judged")
	}
	if got := Low(0, false, 0, 0); got < 0.09 || got > 0.11 {
		t.Errorf("of a model nobody said anything of it is %v", got)
	}
	if Low(0, false, 30, 30) < 0.85 {
		t.Error("thirty good results make up for nobody's word")
	}
}

func TestABreaker(t *testing.T) {
	const second = models.Instant(1_000_000)
	b, now := Breaker{}, models.Instant(1_000*second)
	fail := func() bool { now += second; return b.Failed("overloaded", now) }
	twice := func() bool { first := fail(); return fail() || first }
	if twice() || b.State(now) != "closed" {
		t.Fatal("it opened before the third failure in a row")
	}
	b.Worked(now)
	if twice() {
		t.Fatal("what failed before a success still counts")
	}
	if !fail() || b.State(now) != "open" || b.Until != now+Shortest || b.Class != "overloaded" {
		t.Fatalf("it did not open: %+v", b)
	}
	if fail() || b.Until > now+Shortest || b.Worked(now) {
		t.Fatal("what was under way when it opened changed it")
	}
	now = b.Until
	if b.State(now) != "half_open" || !b.Tries(now) {
		t.Fatal("nothing tries when its time is over")
	}
	if !fail() || b.Until != now+2*Shortest {
		t.Fatalf("the second time is not twice as long: %+v at %d", b, now)
	}
	for range 20 {
		now = b.Until
		fail()
	}
	if b.Until-now > Longest {
		t.Fatal("it stays open for longer than the longest time")
	}
	now = b.Until
	if !b.Worked(now) || b.State(now) != "closed" || b.Opened != 0 {
		t.Fatal("a success does not shut it")
	}
	if twice() {
		t.Fatal("it has not forgotten")
	}
	if now += 2 * remembers; b.Failed("overloaded", now) {
		t.Fatal("failures long ago are not in a row")
	}
}

func TestWhatIsSeenFadesAndIsCorrected(t *testing.T) {
	s, was := models.ModelSeen{}, 0.2
	Judge(&s, 0.2, nil)
	Judge(&s, 1, nil)
	Judge(&s, 0.8, &was) // the first source thinks better of it
	if s.Judged != 2 || math.Abs(s.Good-1.8) > 1e-9 {
		t.Errorf("%+v", s)
	}
	for range 5_000 {
		Judge(&s, 0, nil)
		Ran(&s, Use{In: 100, Out: 10, Cached: 200}, 2)
	}
	if s.Judged >= fadeAt || s.Good > 0.1 || s.Runs >= fadeAt || math.Abs(s.In/s.Runs-100) > 1e-6 || s.Cached > s.In || math.Abs(s.Seconds/s.Runs-2) > 1e-6 {
		t.Errorf("%+v", s)
	}
}

func TestTheBookKeepsTenantsApartAndComesBack(t *testing.T) {
	b, m := NewBook(), &models.Model{Name: "small", Quality: map[string]float64{"default": 0.8}}
	before := b.Low(1, "llm.chat", m)
	for range 200 {
		b.Judge(1, "llm.chat", "small", 0, nil)
		b.Ran(1, "llm.chat", "small", Use{In: 100, Out: 900}, 3)
	}
	if b.Low(1, "llm.chat", m) > before-0.3 || b.Low(2, "llm.chat", m) != before || b.Low(1, "llm.sum", m) != before {
		t.Errorf("%v, %v, %v after %v", b.Low(1, "llm.chat", m), b.Low(2, "llm.chat", m), b.Low(1, "llm.sum", m), before)
	}
	if u := b.Uses(1, "llm.chat", "large", 0); math.Abs(u.Out-900) > 1e-6 {
		t.Errorf("a model that has not run is expected to use %+v", u)
	}
	if u := b.Uses(2, "llm.chat", "small", 0); u != Prior {
		t.Errorf("another tenant's is expected to use %+v", u)
	}
	m.Quality["llm.chat"] = 1
	if b.Low(1, "llm.chat", m) == b.Low(2, "llm.chat", m) || b.Low(2, "llm.chat", m) != 1 {
		t.Error("another word of the model is not heard")
	}
	saved := b.Changes(100)
	if len(saved) != 2 || len(b.Changes(100)) != 0 {
		t.Fatalf("%d pages changed", len(saved))
	}
	other := NewBook()
	other.Low(1, "llm.chat", m) // it was asked before
	other.Restore(saved)
	if got, want := other.Low(1, "llm.chat", m), b.Low(1, "llm.chat", m); got != want {
		t.Errorf("it came back as %v, not %v", got, want)
	}
	if other.Of(1, "llm.chat", "small") != b.Of(1, "llm.chat", "small") {
		t.Error("what came back differs")
	}
}
