package route

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"nightshift/models"
)

func n(v int64) *int64 { return &v }

func option(name string, micro int64, low float64, change ...func(*Option)) Option {
	o := Option{Model: &models.Model{Name: name, InputMicro: micro, OutputMicro: micro, Enabled: true}, Factor: 1, Uses: Prior, Low: low}
	for _, c := range change {
		c(&o)
	}
	return o
}

func wants(target float64, change ...func(*Ask)) *Ask {
	a := &Ask{Type: "llm.classify", ModelAsk: models.ModelAsk{QualityTarget: target}}
	for _, c := range change {
		c(a)
	}
	return a
}

func TestTheCheapestThatIsGoodEnoughIsChosen(t *testing.T) {
	small, middle, large := option("small", 100_000, 0.7), option("middle", 400_000, 0.85), option("large", 2_000_000, 0.95)
	open := func(o *Option) { o.Shut = "its breaker is open" }
	for _, c := range []struct {
		name    string
		ask     *Ask
		options []Option
		want    string
	}{
		{"nothing is wanted", wants(0), []Option{large, middle, small}, "small"},
		{"a target", wants(0.8), []Option{small, middle, large}, "middle"},
		{"a higher one", wants(0.9), []Option{small, middle, large}, "large"},
		{"too high", wants(0.99), []Option{small, middle, large}, ""},
		{"none is there", wants(0), nil, ""},
		{"candidates", wants(0, func(a *Ask) { a.Candidates = []string{"large", "middle"} }), []Option{small, middle, large}, "middle"},
		{"disabled", wants(0), []Option{option("small", 100_000, 0.7, func(o *Option) { o.Model.Enabled = false }), middle}, "middle"},
		{"other types", wants(0), []Option{option("small", 100_000, 0.7, func(o *Option) { o.Model.TaskTypes = []string{"embed.*"} }), middle}, "middle"},
		{"its type", wants(0), []Option{option("small", 100_000, 0.7, func(o *Option) { o.Model.TaskTypes = []string{"llm.*"} }), middle}, "small"},
		{"context", wants(0, func(a *Ask) { a.Tokens = 9_000 }), []Option{option("small", 100_000, 0.7, func(o *Option) { o.Model.ContextTokens = n(8_000) }), middle}, "middle"},
		{"latency as said", wants(0, func(a *Ask) { a.MaxLatencyMS = 500 }), []Option{option("small", 100_000, 0.7, func(o *Option) { o.Model.LatencyMS = n(900) }), middle}, "middle"},
		{"latency as seen", wants(0, func(a *Ask) { a.MaxLatencyMS = 500 }), []Option{option("small", 100_000, 0.7, func(o *Option) { o.Seen = models.ModelSeen{Runs: 10, Seconds: 9} }), middle}, "middle"},
		{"loaded nowhere", wants(0), []Option{option("small", 100_000, 0.7, func(o *Option) { o.Absent = true }), middle}, "middle"},
		{"loaded nowhere, but the only one", wants(0.8), []Option{small, option("middle", 400_000, 0.85, func(o *Option) { o.Absent = true })}, "middle"},
		{"its breaker is open", wants(0), []Option{option("small", 100_000, 0.7, open), middle, large}, "middle"},
		{"its fallback serves", wants(0), []Option{option("small", 100_000, 0.7, open, func(o *Option) { o.Model.Fallbacks = []string{"gone", "large"} }), middle, large}, "large"},
		{"a fallback that falls short does not", wants(0.8), []Option{small, option("middle", 400_000, 0.85, open, func(o *Option) { o.Model.Fallbacks = []string{"small"} }), large}, "large"},
		{"a fallback outside the candidates does not", wants(0, func(a *Ask) { a.Candidates = []string{"small"} }), []Option{option("small", 100_000, 0.7, open, func(o *Option) { o.Model.Fallbacks = []string{"large"} }), large}, ""},
		{"an open one that costs more matters to nobody", wants(0), []Option{small, option("middle", 400_000, 0.85, open, func(o *Option) { o.Model.Fallbacks = []string{"large"} }), large}, "small"},
		{"all breakers are open", wants(0), []Option{option("small", 100_000, 0.7, open)}, ""},
		{"failed before", wants(0, func(a *Ask) { a.Failed = []string{"small"} }), []Option{small, middle, large}, "middle"},
		{"a candidate that is not there", wants(0, func(a *Ask) { a.Candidates = []string{"gone"} }), []Option{small, option("gone", 0, 0, func(o *Option) { o.Gone = true })}, ""},
		{"equal in price", wants(0), []Option{option("b", 100_000, 0.7), option("a", 100_000, 0.7), option("c", 100_000, 0.8)}, "c"},
		{"off its peak", wants(0), []Option{small, option("large", 2_000_000, 0.95, func(o *Option) { o.Factor = 0.01 })}, "large"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, reason := Choose(c.ask, Rank(c.ask, c.options))
			if got != c.want || reason == "" {
				t.Errorf("%q was chosen (%s), want %q", got, reason, c.want)
			}
		})
	}
}

// What the choice says is true of the options, in whatever order they stand; and it is the same each time.
func TestNothingCheaperWouldHaveDone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var options []Option
		for i := range rapid.IntRange(0, 8).Draw(t, "models") {
			o := option(string(rune('a'+i)), rapid.Int64Range(0, 50).Draw(t, "price")*100_000, rapid.Float64Range(0, 1).Draw(t, "low"))
			o.Model.Enabled = rapid.IntRange(0, 4).Draw(t, "enabled") > 0
			if o.Absent = rapid.IntRange(0, 4).Draw(t, "absent") == 0; rapid.IntRange(0, 4).Draw(t, "shut") == 0 {
				o.Shut = "its breaker is open"
			}
			if rapid.Bool().Draw(t, "context") {
				o.Model.ContextTokens = n(rapid.Int64Range(0, 4_000).Draw(t, "tokens"))
			}
			options = append(options, o)
		}
		ask := wants(rapid.Float64Range(0, 1).Draw(t, "target"), func(a *Ask) { a.Tokens = rapid.Int64Range(0, 4_000).Draw(t, "wanted") })
		ranking := Rank(ask, options)
		chosen, _ := Choose(ask, ranking)
		fits := func(o *Option) bool {
			return o.Model.Enabled && o.Low >= ask.QualityTarget && (o.Model.ContextTokens == nil || ask.Tokens <= *o.Model.ContextTokens) && o.Shut == ""
		}
		var got *Option
		for i := range options {
			if options[i].Model.Name == chosen {
				got = &options[i]
			}
		}
		for i := range options {
			switch o := &options[i]; {
			case !fits(o):
				if got == o {
					t.Fatalf("%s was chosen and does not fit", chosen)
				}
			case got == nil:
				t.Fatalf("%s fits and nothing was chosen", o.Model.Name)
			case o.Absent == got.Absent && Price(o.Model, Expect(ask.Tokens, o.Seen), 1) < Price(got.Model, Expect(ask.Tokens, got.Seen), 1), got.Absent && !o.Absent:
				t.Fatalf("%s was chosen, and %s would have done", chosen, o.Model.Name)
			}
		}
		slices.Reverse(options)
		if again := Rank(ask, options); !slices.EqualFunc(ranking, again, func(a, b Ranked) bool { return a.Name == b.Name && a.Why == b.Why }) {
			t.Fatalf("the order of the options matters: %+v and %+v", ranking, again)
		}
	})
}

func TestBetterLeavesWhatIsNoBetterOut(t *testing.T) {
	options := []Option{option("small", 1, 0.7), option("other", 1, 0.7), option("middle", 2, 0.85), option("large", 3, 0.95)}
	names := func(list []Option) (out []string) {
		for _, o := range list {
			out = append(out, o.Model.Name)
		}
		return out
	}
	if got := names(Better(wants(0), options, "small")); !slices.Equal(got, []string{"middle", "large"}) {
		t.Errorf("better than small: %v", got)
	}
	if got := names(Better(wants(0, func(a *Ask) { a.Failed = []string{"small", "large"} }), options, "small")); !slices.Equal(got, []string{"middle"}) {
		t.Errorf("large has failed before: %v", got)
	}
	if got := Better(wants(0), options, "large"); len(got) != 0 {
		t.Errorf("nothing is better than the best: %v", names(got))
	}
	if len(options) != 4 {
		t.Error("the options were changed")
	}
}

func TestThePriceOfAUse(t *testing.T) {
	cached := int64(100_000)
	m := &models.Model{InputMicro: 1_000_000, OutputMicro: 4_000_000, BatchDiscount: 0.5}
	for _, c := range []struct {
		use    Use
		cached *int64
		factor float64
		want   int64
	}{
		{Use{In: 1_000, Out: 250}, nil, 1, 2_000},
		{Use{In: 1_000, Out: 250, Cached: 1_000}, nil, 1, 2_000},
		{Use{In: 1_000, Out: 250, Cached: 1_000}, &cached, 1, 1_100},
		{Use{In: 1_000, Out: 250}, nil, Factor(m, 0.5, true), 500},
		{Use{In: 1_000, Out: 250}, nil, Factor(m, 1, false), 2_000},
		{Use{In: 1}, nil, 0.1, 1}, // rounded up: nothing is for free that has a price
		{Use{}, nil, 1, 0},
		{Use{In: math.MaxFloat64}, nil, 1, 1 << 61},
	} {
		with := *m
		with.CachedMicro = c.cached
		if got := Price(&with, c.use, c.factor); got != c.want {
			t.Errorf("%+v at %v costs %d, want %d", c.use, c.factor, got, c.want)
		}
	}
}

func TestWhatARunWillUse(t *testing.T) {
	seen := models.ModelSeen{Runs: 10, In: 20_000, Out: 1_000, Cached: 5_000}
	for _, c := range []struct {
		tokens int64
		seen   models.ModelSeen
		want   Use
	}{
		{0, models.ModelSeen{}, Prior},
		{0, seen, Use{2_000, 100, 500}},
		{4_200, seen, Use{4_000, 200, 1_000}},
		{2_500, models.ModelSeen{}, Use{2_000, 500, 0}},
		{0, models.ModelSeen{Runs: 1, In: 2_000, Out: 250}, Use{1_200, 250, 0}}, // one run says a little
	} {
		if got := Expect(c.tokens, c.seen); math.Abs(got.In-c.want.In)+math.Abs(got.Out-c.want.Out)+math.Abs(got.Cached-c.want.Cached) > 1e-6 {
			t.Errorf("%d of %+v: %+v, want %+v", c.tokens, c.seen, got, c.want)
		}
	}
}
