package forecast

import (
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"nightshift/models"
)

const (
	hour   = 60 * cell
	wholly = 24 * hour
	start  = 1_000_000 * cell // any minute
)

func id(n byte) models.ID { return models.ID{n} }

// daily is a load that fires at some minutes.
func daily(n byte, seconds float64, tasks float64, minutes ...int) *Load {
	l := &Load{Of: Of{Pool: "cpu", Kind: models.Batch}, Schedule: id(n), Tasks: Exactly(tasks), Seconds: Exactly(seconds), Reach: 30}
	for _, m := range minutes {
		l.Fires = append(l.Fires, Fire{At: start + models.Instant(m)*cell, Runs: 1})
	}
	return l
}

func TestARunCountsInEveryMinuteItTouches(t *testing.T) {
	for _, c := range []struct {
		name string
		load *Load
		want []float64 // from the first minute on
	}{
		{"shorter than a minute", daily(1, 20, 5, 1), []float64{0, 5, 0}},
		{"two and a half minutes", daily(1, 150, 2, 1), []float64{0, 2, 2, 2, 0}},
		{"it began before", daily(1, 150, 2, -1), []float64{2, 2, 0}},
		{"runs that overlap", daily(1, 150, 2, 0, 1), []float64{2, 4, 3, 2, 0}},
		{"many short ones in a minute", &Load{Of: Of{Pool: "cpu", Kind: models.Batch}, Tasks: Exactly(1), Seconds: Exactly(1), Fires: []Fire{{start, 30}, {start + cell, 600}}}, []float64{1, 10}},
		{"one after the other", &Load{Of: Of{Pool: "cpu", Kind: models.Batch}, Tasks: Exactly(1), Seconds: Exactly(150), Alone: true, Fires: []Fire{{start, 1}, {start + cell, 1}, {start + 3*cell, 1}}}, []float64{1, 1, 1, 1, 1, 1, 0}},
		{"a workflow of twelve tasks of 100 s in ten minutes", &Load{Of: Of{Pool: "cpu", Kind: models.Batch}, Tasks: Exactly(12), Seconds: Exactly(100), Lasts: 600, Fires: []Fire{{start, 1}}}, []float64{2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 0}},
		{"nothing", daily(1, 0, 5, 1), []float64{0, 0}},
	} {
		g := NewGrid(start, wholly, nil)
		g.Add(c.load)
		for i, want := range c.want {
			p50, p90 := g.At(c.load.Of, start+models.Instant(i)*cell)
			if math.Abs(p50-want) > 1e-9 || math.Abs(p90-want) > 1e-9 {
				t.Errorf("%s: minute %d has %.3f and %.3f, not %.3f", c.name, i, p50, p90, want)
			}
		}
	}
}

func TestWhatVariesAddsUpAsRootOfSquares(t *testing.T) {
	g := NewGrid(start, wholly, nil)
	for n := range byte(4) {
		l := daily(n, 60, 0, 0)
		l.Tasks = Quantiles{10, 12, 16}
		g.Add(l)
	}
	if p50, p90 := g.Peak("cpu", Everything, start, start+1); p50 != 40 || p90 != 52 {
		t.Errorf("four of 10, and 16 nine times in ten, are %.1f and %.1f, not 40 and 52", p50, p90)
	}
}

func TestThePeakIsOfSomeKindsWithinATime(t *testing.T) {
	g := NewGrid(start, wholly, nil)
	quick := daily(1, 60, 3, 10)
	quick.Kind = models.Realtime
	g.Add(quick)
	g.Add(daily(2, 60, 5, 10))
	g.Add(daily(3, 60, 7, 20))
	other := daily(4, 60, 100, 10)
	other.Pool = "gpu"
	g.Add(other)
	for _, c := range []struct {
		kinds       Kinds
		from, until int
		want        float64
	}{
		{Everything, 0, 60, 8},
		{Everything, 11, 60, 7},
		{Everything, 0, 10, 0},
		{Kinds{models.Realtime: true}, 0, 60, 3},
		{Kinds{}, 0, 60, 0},
		{Everything, -60, 100_000, 8},
		{Everything, 30, 20, 0},
	} {
		_, got := g.Peak("cpu", c.kinds, start+models.Instant(c.from)*cell, start+models.Instant(c.until)*cell)
		if got != c.want {
			t.Errorf("the peak of %v from %d until %d is %.1f, not %.1f", c.kinds, c.from, c.until, got, c.want)
		}
	}
	if _, none := (*Grid)(nil).Peak("cpu", Everything, 0, start); none != 0 {
		t.Error("without a forecast nothing is foreseen")
	}
}

func loads(t *rapid.T) []*Load {
	var out []*Load
	for n := range rapid.IntRange(1, 8).Draw(t, "loads") {
		mid := rapid.Float64Range(0.5, 20).Draw(t, "tasks")
		seconds := rapid.Float64Range(1, 1000).Draw(t, "seconds")
		l := &Load{
			Of:       Of{Pool: rapid.SampledFrom([]string{"cpu", "gpu"}).Draw(t, "pool"), Kind: rapid.SampledFrom(models.Kinds()).Draw(t, "kind")},
			Schedule: id(byte(n + 1)), Tasks: Quantiles{mid, mid * 1.2, mid * rapid.Float64Range(1.2, 3).Draw(t, "more")}, Seconds: Quantiles{seconds, seconds, seconds * 1.5},
			Alone: rapid.Bool().Draw(t, "alone"), Reach: rapid.IntRange(0, 20).Draw(t, "reach"),
			Offset: models.Instant(rapid.IntRange(0, 90).Draw(t, "offset")) * 1_000_000,
		}
		every := rapid.SampledFrom([]int{5, 10, 60, 240}).Draw(t, "every")
		for m := rapid.IntRange(0, 4).Draw(t, "first") - 90; m < 360+90; m += every {
			l.Fires = append(l.Fires, Fire{At: start + models.Instant(m)*cell + l.Offset, Runs: 1})
		}
		out = append(out, l)
	}
	return out
}

// What is taken out leaves nothing, whatever else is there, and the order plays no part.
func TestLoadsAddUp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		all := loads(t)
		there, back := NewGrid(start, 6*hour, nil), NewGrid(start, 6*hour, nil)
		gone := daily(99, 333, 7, 3, 17, 200)
		there.Add(gone)
		for i, l := range all {
			there.Add(l)
			back.Add(all[len(all)-1-i])
		}
		there.Take(gone)
		for c := range 360 {
			for _, p := range []string{"cpu", "gpu"} {
				at := start + models.Instant(c)*cell
				a, _ := there.Peak(p, Everything, at, at+cell)
				b, _ := back.Peak(p, Everything, at, at+cell)
				if math.Abs(a-b) > 1e-6 {
					t.Fatalf("minute %d of %s has %f and %f", c, p, a, b)
				}
			}
		}
	})
}

// A load that is moved asks for as much as before.
func TestAMoveConservesTheSum(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := loads(t)[0]
		sum := func(l *Load) (mid, high float64) {
			for _, p := range newSheet(2000).parts(l, start-500*cell) {
				mid, high = mid+p.mid, high+p.high
			}
			return mid, high
		}
		mid, high := sum(l)
		mid2, high2 := sum(l.Shift(rapid.IntRange(-60, 60).Draw(t, "minutes")))
		if math.Abs(mid-mid2) > 1e-6 || math.Abs(high-high2) > 1e-6 {
			t.Fatalf("%f and %f became %f and %f", mid, high, mid2, high2)
		}
	})
}

var capacities = map[string]Capacity{"cpu": Slots(20), "gpu": {All: 16, For: [4]int64{4, 4, 4, 4}}}

// A suggestion never raises the peak, lowers that of its collision, and what it says of it afterwards is what the forecast
// says once the move was made.
func TestASuggestionKeepsItsWord(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		all := loads(t)
		before := NewScene(start, 6*hour, all, capacities, nil)
		for _, c := range before.Collisions(MostCollisions) {
			if c.Peak <= 0 || c.Count < 2 || !c.From.Time().Before(c.Until.Time()) || c.PeakAt < c.From || c.PeakAt >= c.Until {
				t.Fatalf("%+v is no collision", c)
			}
			if c.Move == nil {
				continue
			}
			m := c.Move
			i := slices.IndexFunc(all, func(l *Load) bool { return l.Schedule == m.Schedule })
			if m.Minutes == 0 || abs(m.Minutes) > all[i].Reach || m.To-m.From != models.Instant(m.Minutes)*cell || m.To < start {
				t.Fatalf("%+v is no move of %+v", m, all[i])
			}
			if !slices.ContainsFunc(all[i].Fires, func(f Fire) bool { return f.At-all[i].Offset == m.From }) {
				t.Fatalf("%d is no moment of the schedule", m.From)
			}
			moved := slices.Clone(all)
			moved[i] = all[i].Shift(m.Minutes)
			after := NewScene(start, 6*hour, moved, capacities, nil)
			was, _ := before.Peak(c.Pool)
			is, _ := after.Peak(c.Pool)
			if is > was+slack || m.PeakAfter > c.Peak-slack {
				t.Fatalf("the peak was %f and is %f, that of the collision %f and %f", was, is, c.Peak, m.PeakAfter)
			}
			if judged, why := before.Judge(m.Schedule, m.From, m.Minutes); judged == nil || judged.Peak < c.Peak-slack || judged.From == c.From && math.Abs(judged.Move.PeakAfter-m.PeakAfter) > 1e-6 {
				t.Fatalf("%+v was suggested and is judged %q %+v", m, why, judged)
			}
			if got := after.highest(c, moved[i]); math.Abs(got-m.PeakAfter) > 1e-6 {
				t.Fatalf("the forecast says %f after the move, the suggestion %f", got, m.PeakAfter)
			}
		}
	})
}

// highest is the most in a collision's stretch, and wherever a load is at work.
func (s *Scene) highest(c Collision, l *Load) (most float64) {
	p := s.pools[c.Pool]
	for at := c.From; at < c.Until; at += cell {
		most = max(most, p.total[int((at-s.begin)/cell)])
	}
	for _, part := range newSheet(len(p.total)).parts(l, s.begin) {
		if part.cell >= s.from && part.cell < s.from+s.n {
			most = max(most, p.total[part.cell])
		}
	}
	return most
}

func TestTheOrderOfLoadsPlaysNoPart(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	var all []*Load
	for n := range byte(12) {
		all = append(all, daily(n+1, 120, float64(1+n%3), int(n%4), 60+int(n%4)))
	}
	want := NewScene(start, wholly, all, capacities, nil).Collisions(MostCollisions)
	for range 5 {
		rng.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		got := NewScene(start, wholly, all, capacities, nil).Collisions(MostCollisions)
		if len(got) != len(want) {
			t.Fatalf("%d collisions, and %d in another order", len(want), len(got))
		}
		for i := range got {
			if !reflect.DeepEqual(got[i], want[i]) {
				t.Fatalf("%+v in one order, %+v in another", want[i], got[i])
			}
		}
	}
}

func TestCollisions(t *testing.T) {
	for _, c := range []struct {
		name  string
		loads []*Load
		has   int64
		want  []string
	}{
		{"two that never meet", []*Load{daily(1, 60, 1, 0), daily(2, 60, 1, 120)}, 10, nil},
		{"one alone is no collision, however large", []*Load{daily(1, 60, 100, 5), daily(2, 60, 1, 120)}, 10, nil},
		{"two that meet once stand out", []*Load{daily(1, 60, 3, 60), daily(2, 60, 2, 60)}, 100, []string{"60–61: 5, then 3 with 1 at 61"}},
		{"too much for the pool", []*Load{daily(1, 600, 6, 60), daily(2, 600, 5, 65)}, 8, []string{"65–70: 11 (over), then 6 with 1 at 55"}},
		{"nothing can be moved", []*Load{fixed(daily(1, 600, 6, 60)), fixed(daily(2, 600, 5, 65))}, 8, []string{"65–70: 11 (over)"}},
	} {
		var got []string
		for _, c := range NewScene(start, 4*hour, c.loads, map[string]Capacity{"cpu": Slots(c.has)}, nil).Collisions(MostCollisions) {
			got = append(got, c.text())
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, not %q", c.name, got, c.want)
		}
	}
}

func fixed(l *Load) *Load { l.Reach = 0; return l }

func TestWhereASuggestionMayGo(t *testing.T) {
	a, b := daily(1, 60, 3, 60), daily(2, 60, 3, 60)
	only := func(minutes ...int) func(int) bool {
		return func(m int) bool { return slices.Contains(minutes, m) }
	}
	a.May, b.May = only(), only(-7, 15)
	got := NewScene(start, 4*hour, []*Load{a, b}, nil, nil).Collisions(MostCollisions)
	if len(got) != 1 || got[0].Move == nil || got[0].Move.Schedule != id(2) || got[0].Move.Minutes != -7 {
		t.Fatalf("%+v", got)
	}
	late := NewScene(start+59*cell, 4*hour, []*Load{a, b}, nil, nil).Collisions(MostCollisions)
	if len(late) != 1 || late[0].Move == nil || late[0].Move.Minutes != 15 {
		t.Fatalf("it goes to the past: %+v", late[0].Move)
	}
}

func (c *Collision) text() string {
	out := fmt.Sprintf("%d–%d: %.0f", (c.From-start)/cell, (c.Until-start)/cell, c.Peak)
	if c.Over {
		out += " (over)"
	}
	if m := c.Move; m != nil {
		out += fmt.Sprintf(", then %.0f with %d at %d", m.PeakAfter, m.Schedule[0], (m.To-start)/cell)
	}
	return out
}

func TestAMoveIsJudged(t *testing.T) {
	a, b, alone := daily(1, 60, 3, 60), daily(2, 60, 3, 60), daily(3, 60, 3, 200)
	b.May = func(m int) bool { return m != 13 }
	s := NewScene(start, 4*hour, []*Load{a, b, alone}, nil, nil)
	for _, c := range []struct {
		schedule byte
		minutes  int
		want     Why
	}{{1, 5, ""}, {2, -30, ""}, {1, 31, TooFar}, {1, 0, TooFar}, {2, 13, Fixed}, {3, 5, Alone}, {9, 5, Alone}} {
		got, why := s.Judge(id(c.schedule), a.Fires[0].At, c.minutes)
		if why != c.want || (got != nil) != (why == "") || got != nil && (got.Peak != 6 || got.Move.PeakAfter != 3) {
			t.Errorf("%d by %d is %q %+v, not %q", c.schedule, c.minutes, why, got, c.want)
		}
	}
	worse := NewScene(start, 4*hour, []*Load{a, b, daily(3, 60, 9, 70)}, nil, nil)
	if _, why := worse.Judge(id(1), a.Fires[0].At, 10); why != NoBetter {
		t.Errorf("into a higher peak: %q", why)
	}
}
