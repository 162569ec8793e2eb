package forecast

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"nightshift/models"
)

func TestTheQuietestPlaceOfAWindow(t *testing.T) {
	busy := NewGrid(start, wholly, nil)
	busy.Add(daily(1, 60*30, 4, 0))  // 0–30
	busy.Add(daily(2, 60*20, 2, 30)) // 30–50
	busy.Add(daily(3, 60*10, 9, 60)) // 60–70
	one := daily(9, 60*5, 1)
	for _, c := range []struct {
		name           string
		long           float64
		window, wished int // seconds
		want           int
	}{
		{"no window", 300, 0, 0, 0},
		{"less than a minute", 300, 59, 17, 17},
		{"the place wished for is as quiet as any", 240, 3600, 3010, 3010},
		{"from the place wished for on, and round again", 240, 3600, 3590, 3050},
		{"behind what is busiest", 300, 2400, 20, 1820},
		{"nothing quiet long enough", 3600, 600, 0, 0},
		{"before the busiest of all", 1200, 4140, 7200, 2340},
	} {
		one.Seconds = Exactly(c.long)
		got := busy.Quietest(one, start, models.Instant(c.window)*1_000_000, models.Instant(c.wished)*1_000_000)
		if got != models.Instant(c.want)*1_000_000 {
			t.Errorf("%s: it goes to %.1f s, not %d", c.name, float64(got)/1e6, c.want)
		}
	}
	if got := (*Grid)(nil).Quietest(one, start, hour, 7*cell); got != 7*cell {
		t.Error("without a forecast it stands where it is wished")
	}
}

// No place of the window has a lower peak than the one that was found.
func TestNoPlaceIsQuieter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := NewGrid(start, 6*hour, nil)
		for _, l := range loads(t) {
			g.Add(l)
		}
		one := &Load{Of: Of{Pool: "cpu", Kind: models.IO}, Tasks: Exactly(1), Seconds: Exactly(rapid.Float64Range(1, 4000).Draw(t, "long"))}
		window := models.Instant(rapid.IntRange(0, 7200).Draw(t, "window")) * 1_000_000
		wished := models.Instant(rapid.IntRange(0, 8000).Draw(t, "wished")) * 1_000_000
		got := g.Quietest(one, start, window, wished)
		if got < 0 || got > window {
			t.Fatalf("%d lies outside of the window of %d", got, window)
		}
		long := models.Instant(one.Seconds.P50 * 1e6)
		peak := func(after models.Instant) float64 {
			_, p90 := g.Peak("cpu", Everything, start+after, start+after+long)
			return p90
		}
		lasts := models.Instant(int(floor(long-1, cell))+2) * cell // what a run may touch
		most := peak2(g, start+got, lasts)
		if peak(got) > most+slack {
			t.Fatalf("the run meets %f, which is more than %f", peak(got), most)
		}
		for after := got % cell; after <= window && window >= cell; after += cell {
			if p := peak2(g, start+after, lasts); p < most-1e-5 {
				t.Fatalf("at %d it meets %f, at %d, where it goes, %f", after, p, got, most)
			}
		}
	})
}

// peak2 is the peak of so many whole minutes.
func peak2(g *Grid, at, long models.Instant) float64 {
	from := floor(at, cell) * cell
	_, p90 := g.Peak("cpu", Everything, from, from+long)
	return p90
}

func TestCorrectionsMoveSlowlyWithinBounds(t *testing.T) {
	of := Of{Pool: "cpu", Kind: models.Batch}
	s := NewSeen()
	at := 10 * hour
	s.Saw(of, at, 20, 10)
	if f := s.Factor(of, at); f < 1.05 || f > 1.2 {
		t.Errorf("after one day of twice as much it is %.3f", f)
	}
	if s.Factor(of, at+10*cell) != 1 || s.Factor(of, at+24*hour) == 1 || s.Factor(Of{Pool: "gpu", Kind: models.Batch}, at) != 1 {
		t.Error("a correction is of five minutes of the day, a pool and a kind")
	}
	for range 100 {
		s.Saw(of, at, 1000, 10)
	}
	if f := s.Factor(of, at); f < MostFactor-0.01 || f > MostFactor {
		t.Errorf("it goes to %.3f, its bound is %v", f, MostFactor)
	}
	for range 200 {
		s.Saw(of, at, 0, 10)
	}
	if f := s.Factor(of, at); f > 0.51 || f < 0.5 {
		t.Errorf("it goes to %.3f, its bound is a half", f)
	}
	s.Saw(of, at+cell*30, 50, 0)
	s.Saw(of, at+cell*30, math.NaN(), 10)
	if s.Factor(of, at+cell*30) != 1 {
		t.Error("what was not foreseen corrects nothing")
	}
	if (*Seen)(nil).Factor(of, at) != 1 {
		t.Error("nothing seen corrects nothing")
	}
}

func TestCorrectionsComeBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := NewSeen()
		for range rapid.IntRange(1, 50).Draw(t, "n") {
			of := Of{Pool: rapid.SampledFrom([]string{"cpu", "gpu"}).Draw(t, "pool"), Kind: rapid.SampledFrom(models.Kinds()).Draw(t, "kind")}
			s.Saw(of, models.Instant(rapid.Int64Range(0, 1<<60).Draw(t, "at")), rapid.Float64Range(0, 100).Draw(t, "ran"), rapid.Float64Range(0, 100).Draw(t, "foreseen"))
		}
		saved := s.Changes()
		if again := s.Changes(); len(again) != 0 {
			t.Fatalf("%d are told as changed twice", len(again))
		}
		back := NewSeen()
		back.Restore(saved)
		for of, factors := range s.factors {
			for i := range factors {
				at := models.Instant(i) * bucket
				if a, b := s.Factor(of, at), back.Factor(of, at); math.Abs(a-b) > 1e-4 {
					t.Fatalf("%f came back as %f", a, b)
				}
			}
		}
	})
	s := NewSeen()
	s.Restore([]models.Correction{{Pool: "cpu", Factors: []byte{1, 2, 3}}, {Pool: "gpu", Factors: make([]byte, 2*dayBuckets)}})
	if s.Factor(Of{Pool: "cpu"}, hour) != 1 || s.Factor(Of{Pool: "gpu"}, hour) != 0.5 {
		t.Error("what can't be read corrects nothing, and what is out of bounds is brought into them")
	}
}

func TestWhatWasSeenCorrectsThePeak(t *testing.T) {
	s := NewSeen()
	l := daily(1, 60, 10, 10)
	for range 100 {
		s.Saw(l.Of, start+10*cell, 15, 10)
	}
	g := NewGrid(start, wholly, s)
	g.Add(l)
	if _, p90 := g.Peak("cpu", Everything, start, start+hour); math.Abs(p90-15) > 0.01 {
		t.Errorf("the peak is %.2f, not 15", p90)
	}
	if _, p90 := g.At(l.Of, start+10*cell); math.Abs(p90-15) > 0.01 || g.Raw(l.Of, start+10*cell) != 10 {
		t.Errorf("the minute has %.2f, not 15, and %.2f before the correction", p90, g.Raw(l.Of, start+10*cell))
	}
	if peak, _ := NewScene(start, hour, []*Load{l}, nil, s).Peak("cpu"); math.Abs(peak-15) > 0.01 {
		t.Errorf("the scene says %.2f", peak)
	}
}

func TestBucketsHoldTheBusiestOfTheirMinutes(t *testing.T) {
	at := models.Instant(1000) * bucket
	g := NewGrid(at+2*cell, hour, nil)
	for _, l := range []*Load{{Fires: []Fire{{at + 3*cell, 1}}, Tasks: Exactly(3)}, {Fires: []Fire{{at + 4*cell, 1}, {at + 11*cell, 1}}, Tasks: Quantiles{5, 6, 9}}} {
		l.Of, l.Seconds = Of{Pool: "cpu", Kind: models.IO, Lane: 7}, Exactly(30)
		g.Add(l)
	}
	want := []Slot{{Of{"cpu", models.IO, 7}, at, 5, 9}, {Of{"cpu", models.IO, 7}, at + 2*bucket, 5, 9}}
	if got := g.Buckets(); !slices.Equal(got, want) {
		t.Errorf("%+v", got)
	}
}
