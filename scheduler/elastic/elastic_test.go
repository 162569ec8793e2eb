package elastic_test

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"nightshift/models"
	"nightshift/scheduler/elastic"
)

func TestRoomIsWhatIsLeftBesideNeedAndHeadroom(t *testing.T) {
	for _, c := range []struct {
		capacity, need, trim float64
		want                 int32
	}{
		{100, 40, 1, 50},            // 0.9 × 100 − 40
		{100, 10, 1, 80},            // from a tenth on the whole headroom is kept
		{100, 2, 1, 96},             // below it no more than is needed
		{100, 0, 1, elastic.Unheld}, // nobody needs anything: all slots
		{100, 0.2, 1, elastic.Unheld},
		{100, 95, 1, 1}, // never below one
		{100, 1000, 1, 1},
		{100, 40, 0.5, 25}, // cut by the guard
		{1, 1, 1, 1},
		{4, 0.4, 1, 3},
		{2, 0.1, 1, elastic.Unheld},
	} {
		if got := elastic.Room(c.capacity, c.need, c.trim); got != c.want {
			t.Errorf("room of %v slots beside a need of %v, trimmed to %v: %d, not %d", c.capacity, c.need, c.trim, got, c.want)
		}
	}
}

// steady is a look at a pool of 100 slots that 30 protected tasks use while hour-long ones want the rest.
func steady(at models.Instant) elastic.Seen {
	return elastic.Seen{At: at, Capacity: 100, Busy: 30, Runtime: 3600, Running: 60, Patience: 2}
}

func TestWhatIsHeldFollowsDemandAndForecast(t *testing.T) {
	h, at := elastic.New(), models.Instant(1_000_000_000)
	look := func(change func(*elastic.Seen)) int32 {
		at += elastic.Every
		s := steady(at)
		change(&s)
		h.Look(s)
		return h.Room
	}
	if room := look(func(s *elastic.Seen) { s.Busy = 0 }); room != elastic.Unheld {
		t.Fatalf("nobody needs anything, and the room is %d", room)
	}
	for range 100 {
		look(func(*elastic.Seen) {})
	}
	if h.Room != 60 {
		t.Fatalf("after 30 of 100 slots were needed for long the room is %d", h.Room)
	}
	if room := look(func(s *elastic.Seen) { s.Peak = 70 }); room != 20 {
		t.Fatalf("70 slots are foreseen, and the room is %d", room)
	}
	for n := range 12 { // a dwell
		if room := look(func(*elastic.Seen) {}); room != 20 {
			t.Fatalf("%d looks after the forecast has gone the room is %d", n+1, room)
		}
	}
	if room := look(func(*elastic.Seen) {}); room != 60 {
		t.Fatalf("a dwell after the forecast has gone the room is %d", room)
	}
}

func TestWhereSlotsFreeThemselvesNothingIsHeld(t *testing.T) {
	s := steady(1)
	s.Runtime = 5 // 30 × 5 s / 100 slots: a slot for each within 1.5 s
	h := elastic.New()
	if h.Look(s); h.Holds() {
		t.Fatalf("the room is %d", h.Room)
	}
	s.At, s.Late = s.At+elastic.Every, 3 // it is not as quick as was believed
	if h.Look(s); !h.Holds() {
		t.Fatal("a protected task waits too long, and nothing is held")
	}
}

func TestTheGuardCutsAndGivesBackSlowly(t *testing.T) {
	h, at := elastic.New(), models.Instant(1_000_000_000)
	look := func(late float64) {
		at += elastic.Every
		s := steady(at)
		s.Late = late
		h.Look(s)
	}
	look(0)
	full := h.Room
	look(5)
	look(5)
	if cut := int32(math.Round(0.9 * float64(full))); h.Room != cut {
		t.Fatalf("two looks at a late task leave %d of %d, not %d", h.Room, full, cut)
	}
	for range 100 {
		look(5)
	}
	if least := int32(math.Round(0.4 * float64(full))); h.Room != least {
		t.Fatalf("for all its cuts the guard leaves %d of %d, not %d", h.Room, full, least)
	}
	for range 200 {
		look(0)
	}
	if h.Room != full {
		t.Fatalf("long after the last late task the room is %d of %d", h.Room, full)
	}
}

func TestARestoredHoldKeepsItsRoomForADwell(t *testing.T) {
	h, at := elastic.Restored(7), models.Instant(5)
	for range 12 {
		at += elastic.Every
		if h.Look(elastic.Seen{At: at, Capacity: 100, Patience: 2}); h.Room != 7 {
			t.Fatalf("within a dwell the room is %d", h.Room)
		}
	}
	if h.Look(elastic.Seen{At: at + elastic.Every, Capacity: 100, Patience: 2}); h.Room != elastic.Unheld {
		t.Fatalf("after a dwell without need the room is %d", h.Room)
	}
}

// However demand, forecast and waits go up and down, there is room for one,
// and no rise comes sooner than a dwell after a fall.
func TestTheRoomNeverFlapsAndNeverVanishes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h, at := elastic.New(), models.Instant(1)
		if rapid.Bool().Draw(t, "restored") {
			h = elastic.Restored(rapid.Int32Range(-3, 50).Draw(t, "room"))
		}
		fell := models.Instant(-elastic.Dwell)
		capacity := float64(rapid.IntRange(1, 200).Draw(t, "capacity"))
		value := func(name string, most float64) float64 { return rapid.Float64Range(0, most).Draw(t, name) }
		for range rapid.IntRange(1, 120).Draw(t, "looks") {
			at += models.Instant(rapid.Int64Range(elastic.Every, 4*elastic.Every).Draw(t, "span"))
			before := h.Room
			changed := h.Look(elastic.Seen{
				At: at, Capacity: capacity, Busy: value("busy", capacity), Waiting: value("waiting", 300), Peak: value("peak", 300),
				Runtime: value("runtime", 5000), Running: value("running", capacity), Late: value("late", 10), Patience: 2,
			})
			switch {
			case h.Room < 1:
				t.Fatalf("the room is %d", h.Room)
			case changed != (h.Room != before):
				t.Fatalf("from %d to %d it says %v", before, h.Room, changed)
			case h.Room < before:
				fell = at
			case h.Room > before && at-fell < elastic.Dwell:
				t.Fatalf("it rises from %d to %d %s after it fell", before, h.Room, at.Sub(fell))
			case h.Demand > capacity || h.Demand < 0 || h.Trim > 1 || h.Trim < 0.39:
				t.Fatalf("it believes in a demand of %v of %v slots, and gives %v of the room", h.Demand, capacity, h.Trim)
			}
		}
	})
}

func TestAHeldTaskLeavesInTime(t *testing.T) {
	const second = models.Instant(1_000_000)
	since := 1_000_000 * second
	for _, c := range []struct {
		most   int32
		latest models.Instant
		until  models.Instant
	}{
		{0, 0, 0},
		{600, 0, since + 600*second},
		{600, since + 700*second, since + 400*second},
		{600, since + 7000*second, since + 600*second},
		{0, since + 7000*second, since + 6700*second},
		{0, since + 10*second, since}, // it is due already
	} {
		got := elastic.Until(since, c.most, c.latest)
		if got != c.until {
			t.Errorf("held at most %d s, latest start %d: until %d, not %d", c.most, c.latest, got, c.until)
		}
		if got == 0 {
			if elastic.Leaves(got, since+1_000_000*second) {
				t.Error("a hold without a bound ends by itself")
			}
			continue
		}
		if elastic.Leaves(got, got-elastic.Every-1) || !elastic.Leaves(got, got-elastic.Every) {
			t.Errorf("a task held until %d leaves at another moment than the look before", got)
		}
	}
}

// Whenever a hold began and however often it is looked at, a task has left it by its bound: no later than the longest time,
// and before its latest start where there was time for that.
func TestNobodyIsHeldPastItsTime(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		since := models.Instant(rapid.Int64Range(1, 1e12).Draw(t, "since"))
		most := rapid.Int32Range(0, 10_000).Draw(t, "most")
		latest := models.Instant(rapid.Int64Range(0, 2e10).Draw(t, "latest start"))
		if latest > 0 {
			latest += since
		}
		until := elastic.Until(since, most, latest)
		if until == 0 {
			if most > 0 || latest > 0 {
				t.Fatal("it has a bound, and none is known")
			}
			return
		}
		at := since + models.Instant(rapid.Int64Range(0, elastic.Every).Draw(t, "first look"))
		for !elastic.Leaves(until, at) {
			at += elastic.Every
		}
		if bound := since + models.Instant(most)*1_000_000; most > 0 && at > max(bound, since+elastic.Every) {
			t.Fatalf("it left %s after the longest time", at.Sub(bound))
		}
		if latest > since+2*elastic.Every && at >= latest {
			t.Fatalf("it left %s after its latest start", at.Sub(latest))
		}
	})
}
