package budget

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"nightshift/models"
)

func zone(t testing.TB, name string) *time.Location {
	t.Helper()
	z, err := time.LoadLocation(name)
	if err != nil {
		t.Fatal(err)
	}
	return z
}

func at(t testing.TB, text string) models.Instant {
	t.Helper()
	moment, err := time.Parse(time.RFC3339, text)
	if err != nil {
		t.Fatal(err)
	}
	return models.InstantOf(moment)
}

func TestPeriodsBeginAtMidnightOfTheirZone(t *testing.T) {
	for _, c := range []struct {
		name, zone, at, since, until string
		period                       models.BudgetPeriod
	}{
		{"a day in UTC", "UTC", "2026-03-05T12:00:00Z", "2026-03-05T00:00:00Z", "2026-03-06T00:00:00Z", models.ByDay},
		{"its first moment", "UTC", "2026-03-05T00:00:00Z", "2026-03-05T00:00:00Z", "2026-03-06T00:00:00Z", models.ByDay},
		{"a day east of it", "Africa/Lusaka", "2026-03-05T22:30:00Z", "2026-03-05T22:00:00Z", "2026-03-06T22:00:00Z", models.ByDay},
		{"a day of 23 hours", "Europe/Berlin", "2026-03-29T10:00:00Z", "2026-03-28T23:00:00Z", "2026-03-29T22:00:00Z", models.ByDay},
		{"a day of 25 hours", "Europe/Berlin", "2026-10-25T10:00:00Z", "2026-10-24T22:00:00Z", "2026-10-25T23:00:00Z", models.ByDay},
		{"a day that begins at one o'clock", "Africa/Cairo", "2026-04-24T10:00:00Z", "2026-04-23T22:00:00Z", "2026-04-24T21:00:00Z", models.ByDay},
		{"a day whose first hour comes twice", "America/Havana", "2026-11-01T12:00:00Z", "2026-11-01T04:00:00Z", "2026-11-02T05:00:00Z", models.ByDay},
		{"the day after one that a place left out", "Pacific/Apia", "2011-12-30T11:00:00Z", "2011-12-30T10:00:00Z", "2011-12-31T10:00:00Z", models.ByDay},
		{"a month", "Africa/Lusaka", "2026-02-28T21:59:59Z", "2026-01-31T22:00:00Z", "2026-02-28T22:00:00Z", models.ByMonth},
		{"December", "UTC", "2026-12-31T23:00:00Z", "2026-12-01T00:00:00Z", "2027-01-01T00:00:00Z", models.ByMonth},
		{"a month over a change of the clock", "Europe/Berlin", "2026-03-15T00:00:00Z", "2026-02-28T23:00:00Z", "2026-03-31T22:00:00Z", models.ByMonth},
	} {
		t.Run(c.name, func(t *testing.T) {
			since, until := Span(c.period, at(t, c.at), zone(t, c.zone))
			if since != at(t, c.since) || until != at(t, c.until) {
				t.Errorf("it is from %s to %s, not from %s to %s", since.Time(), until.Time(), c.since, c.until)
			}
		})
	}
	if since, until := Span(models.InTotal, at(t, "2026-03-05T12:00:00Z"), time.UTC); since != 0 || until != models.Forever {
		t.Errorf("what counts in total is from %d to %d", since, until)
	}
}

func TestPeriodsLieEndToEnd(t *testing.T) {
	zones := []*time.Location{
		time.UTC, zone(t, "Europe/Berlin"), zone(t, "Africa/Cairo"), zone(t, "America/Havana"), zone(t, "America/St_Johns"), zone(t, "Pacific/Apia"),
		zone(t, "Asia/Kathmandu"), zone(t, "Australia/Lord_Howe"), zone(t, "America/Sao_Paulo"), zone(t, "Asia/Beirut"),
	}
	rapid.Check(t, func(t *rapid.T) {
		z := zones[rapid.IntRange(0, len(zones)-1).Draw(t, "zone")]
		period := models.BudgetPeriod(rapid.IntRange(0, 1).Draw(t, "period"))
		moment := models.Instant(rapid.Int64Range(40*86_400, 80*365*86_400).Draw(t, "seconds")*1_000_000 + 1)
		longest := models.Instant(50 * 3600 * 1_000_000)
		if period == models.ByMonth {
			longest = 32 * 86_400 * 1_000_000
		}
		for range 40 {
			since, until := Span(period, moment, z)
			if since > moment || moment >= until || until-since > longest {
				t.Fatalf("%s: %s lies not from %s to %s", z, moment.Time(), since.Time(), until.Time())
			}
			if s, u := Span(period, since, z); s != since || u != until {
				t.Fatalf("%s: the first moment of %s is of another period, from %s to %s", z, since.Time(), s.Time(), u.Time())
			}
			if s, u := Span(period, until-1, z); s != since || u != until {
				t.Fatalf("%s: the last moment before %s is of another period, from %s to %s", z, until.Time(), s.Time(), u.Time())
			}
			if next, _ := Span(period, until, z); next != until {
				t.Fatalf("%s: after %s nothing begins before %s", z, until.Time(), next.Time())
			}
			moment = until
		}
	})
}

func limit(n int64) *int64 { return &n }

func dollars(n int64) Ask { return Ask{Amount: models.Amount{Micro: n}, KnowsMicro: true} }

func TestWhatFits(t *testing.T) {
	tokens := Ask{Amount: models.Amount{Micro: 1, Tokens: 60}, KnowsMicro: true, KnowsTokens: true}
	for _, c := range []struct {
		name  string
		purse Purse
		ask   Ask
		fits  int64
		over  bool
	}{
		{"no limit", Purse{}, dollars(1 << 40), Many, false},
		{"what is left exactly", Purse{LimitMicro: limit(100), Spent: models.Amount{Micro: 60}}, dollars(40), 1, false},
		{"one more", Purse{LimitMicro: limit(100), Spent: models.Amount{Micro: 60}}, dollars(41), 0, true},
		{"what runs counts", Purse{LimitMicro: limit(100), Reserved: models.Amount{Micro: 90}}, dollars(20), 0, true},
		{"what costs nothing, at the limit", Purse{LimitMicro: limit(100), Spent: models.Amount{Micro: 100}}, dollars(0), Many, false},
		{"what costs nothing, over it", Purse{LimitMicro: limit(100), Spent: models.Amount{Micro: 101}}, dollars(0), 0, true},
		{"several", Purse{LimitMicro: limit(100)}, dollars(30), 3, false},
		{"a limit of nothing", Purse{LimitMicro: limit(0)}, dollars(1), 0, true},
		{"a limit of nothing for what is not known", Purse{LimitMicro: limit(0)}, Ask{}, 0, true},
		{"not known: a twentieth, four at once", Purse{LimitMicro: limit(100)}, Ask{}, 4, false},
		{"not known, and four run", Purse{LimitMicro: limit(100), Unknown: models.Amount{Micro: 4}}, Ask{}, 0, false},
		{"known, while four run of which it is not", Purse{LimitMicro: limit(100), Unknown: models.Amount{Micro: 4}}, dollars(80), 1, false},
		{"known, but those four count", Purse{LimitMicro: limit(100), Unknown: models.Amount{Micro: 4}}, dollars(81), 0, true},
		{"not known, and too little left", Purse{LimitMicro: limit(100), Spent: models.Amount{Micro: 96}}, Ask{}, 0, true},
		{"tokens", Purse{LimitTokens: limit(100)}, tokens, 1, false},
		{"tokens bound where money does not", Purse{LimitMicro: limit(1000), LimitTokens: limit(50)}, tokens, 0, true},
		{"more presumed than spent", Purse{LimitMicro: limit(100), Spent: models.Amount{Micro: -10}}, dollars(110), 1, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := c.purse.Fits(c.ask); got != c.fits {
				t.Errorf("%d fit, not %d", got, c.fits)
			}
			if got := c.purse.Exhausted(c.ask); got != c.over {
				t.Errorf("exhausted: %v, not %v", got, c.over)
			}
		})
	}
}

func TestWhatFitsStaysWithinTheLimits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		amount := func(name string) models.Amount {
			return models.Amount{Micro: rapid.Int64Range(0, 2000).Draw(t, name), Tokens: rapid.Int64Range(0, 2000).Draw(t, name+" tokens")}
		}
		maybe := func(name string) *int64 {
			if rapid.Bool().Draw(t, name+" given") {
				return limit(rapid.Int64Range(0, 3000).Draw(t, name))
			}
			return nil
		}
		p := Purse{LimitMicro: maybe("money"), LimitTokens: maybe("tokens"), Spent: amount("spent"), Reserved: amount("reserved")}
		asks := []Ask{}
		for range rapid.IntRange(1, 20).Draw(t, "tasks") {
			a := Ask{Amount: amount("ask"), KnowsMicro: rapid.Bool().Draw(t, "knows"), KnowsTokens: rapid.Bool().Draw(t, "knows tokens")}
			if n := p.Fits(a); (n > 0) != p.Covers(a) || n > 0 && p.Exhausted(a) {
				t.Fatalf("%d of %+v fit %+v, and it is exhausted: %v", n, a, p, p.Exhausted(a))
			}
			if p.Covers(a) && p.Size(a) > p.Room() {
				t.Fatalf("%+v is covered by %+v, but larger than its room %d", a, p, p.Room())
			}
			if !p.Covers(a) {
				continue
			}
			p.Reserve(a, 1)
			asks = append(asks, a)
			if held := p.Held(); p.LimitMicro != nil && p.Spent.Micro+held.Micro > *p.LimitMicro || p.LimitTokens != nil && p.Spent.Tokens+held.Tokens > *p.LimitTokens {
				t.Fatalf("%+v passes its limits", p)
			}
		}
		before := p
		for _, a := range asks {
			p.Reserve(a, -1)
		}
		for _, a := range asks {
			p.Reserve(a, 1)
		}
		if p != before {
			t.Fatalf("what is taken off and put back is %+v, not %+v", p, before)
		}
	})
}

func TestThresholdsAreReachedBySpending(t *testing.T) {
	at := []float64{0.5, 0.8, 1}
	for spent, want := range map[int64]float64{0: 0, 49: 0, 50: 0.5, 79: 0.5, 80: 0.8, 99: 0.8, 100: 1, 300: 1, -5: 0} {
		p := Purse{LimitMicro: limit(100), Spent: models.Amount{Micro: spent}, Reserved: models.Amount{Micro: 100}}
		if got := p.Reached(at); got != want {
			t.Errorf("%d of 100 reach %v, not %v", spent, got, want)
		}
	}
	nearer := Purse{LimitMicro: limit(100), LimitTokens: limit(10), Spent: models.Amount{Micro: 10, Tokens: 8}}
	if got := nearer.Reached(at); got != 0.8 {
		t.Errorf("the limit that is nearer to its end is reached by %v", got)
	}
	nothing := Purse{LimitMicro: limit(0), Spent: models.Amount{Micro: 1}}
	if got := nothing.Reached(at); got != 1 {
		t.Errorf("a limit of nothing is reached by %v", got)
	}
}

func TestTokensCostWhatTheirModelDoesWhereNoCostIsKnown(t *testing.T) {
	priced := Expected{PerMillion: 1_500_000}
	seen := Expected{Ask: Said(70, 400), PerMillion: 1_500_000}
	for _, c := range []struct {
		name string
		of   Expected
		said Ask
		want Ask
	}{
		{"nothing is known", Expected{}, Ask{}, Ask{}},
		{"a price, and no tokens", priced, Ask{}, Ask{}},
		{"tokens without a price", Expected{}, Said(0, 100), Said(0, 100)},
		{"tokens with a price, rounded up", priced, Said(0, 101), Said(152, 101)},
		{"its own word", priced, Said(5, 101), Said(5, 101)},
		{"what was seen", seen, Said(0, 100), Said(70, 100)},
		{"tokens that were seen", Expected{Ask: Said(0, 400), PerMillion: 1_500_000}, Ask{}, Said(600, 400)},
		{"more than can be counted", Expected{PerMillion: 1 << 40}, Said(0, 1<<53), Said(mostMicro, 1<<53)},
	} {
		if got := c.of.Of(c.said); got != c.want {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
}
