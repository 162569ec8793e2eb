package route

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"nightshift/models"
)

// Ask is what a task wants of its model.
type Ask struct {
	models.ModelAsk
	Type   string
	Tokens int64    // it is expected to use a run, as its caller says; 0: not said
	Failed []string // models whose results were not good enough for it
}

// Option is a model that may be chosen, as it stands for the tenant at the moment.
type Option struct {
	Model  *models.Model
	Factor float64 // of its price
	Uses   Use     // of a run
	Seen   models.ModelSeen
	Low    float64 // the quality it has at least, as Low says
	Shut   string  // why nothing is given to it, though it would fit; empty: it takes work
	Absent bool    // no worker has it loaded
	Gone   bool    // there is no such model
}

// Ranked is an option with what it comes to.
type Ranked struct {
	Name      string
	CostMicro int64
	Low       float64
	Why       string
	Fits      bool // it is what was asked for
	Shut      bool // but takes no work now
	Absent    bool
	Gone      bool // there is no such model: its cost and quality say nothing
	Fallbacks []string
}

// Rank orders the options: those that fit by cost, then the others with what is against each.
func Rank(ask *Ask, options []Option) []Ranked {
	out := make([]Ranked, 0, len(options))
	for i := range options {
		o := &options[i]
		r := Ranked{Name: o.Model.Name, CostMicro: Price(o.Model, o.Uses.scaled(ask.Tokens), o.Factor), Low: o.Low, Absent: o.Absent, Gone: o.Gone, Fallbacks: o.Model.Fallbacks}
		r.Why = against(ask, o)
		r.Fits = r.Why == ""
		switch {
		case r.Fits && o.Shut != "":
			r.Shut, r.Why = true, o.Shut
		case r.Fits && o.Absent:
			r.Why = "no worker has it loaded"
		case r.Fits:
			r.Why = "it fits"
		}
		out = append(out, r)
	}
	slices.SortFunc(out, func(a, b Ranked) int {
		return cmp.Or(rung(&a)-rung(&b), cmp.Compare(a.CostMicro, b.CostMicro), cmp.Compare(b.Low, a.Low), strings.Compare(a.Name, b.Name))
	})
	return out
}

// rung orders before cost does: what can start, what would once a worker has loaded it, what would once its breaker shuts.
func rung(r *Ranked) int {
	switch {
	case r.Gone:
		return 4
	case !r.Fits:
		return 3
	case r.Shut:
		return 2
	case r.Absent:
		return 1
	}
	return 0
}

// against is what speaks against an option, empty when it fits.
func against(ask *Ask, o *Option) string {
	m := o.Model
	switch {
	case o.Gone:
		return "there is no such model"
	case !ask.Allows(m.Name):
		return "it is none of the candidates"
	case !m.Enabled:
		return "it is disabled"
	case !m.Serves(ask.Type):
		return fmt.Sprintf("it does not serve tasks of type %s", ask.Type)
	case slices.Contains(ask.Failed, m.Name):
		return "its result was not good enough"
	case m.ContextTokens != nil && ask.Tokens > *m.ContextTokens:
		return fmt.Sprintf("it takes %d tokens, and the task needs %d", *m.ContextTokens, ask.Tokens)
	}
	if latency, known := Latency(o); known && ask.MaxLatencyMS > 0 && latency > ask.MaxLatencyMS {
		return fmt.Sprintf("it answers in %d ms, and at most %d are wanted", latency, ask.MaxLatencyMS)
	}
	if o.Low < ask.QualityTarget {
		return fmt.Sprintf("its quality is sure to be %.3f only, and %.3g is wanted", o.Low, ask.QualityTarget)
	}
	return ""
}

// Latency is how long a model takes to answer: as whoever entered it says, else as was seen.
func Latency(o *Option) (ms int64, known bool) {
	switch {
	case o.Model.LatencyMS != nil:
		return *o.Model.LatencyMS, true
	case o.Seen.Runs >= enough:
		return int64(o.Seen.Seconds / o.Seen.Runs * 1000), true
	}
	return 0, false
}

// Takes says that a task may be given to it now.
func (r *Ranked) Takes() bool { return rung(r) <= 1 }

// Cheapest is the first of a ranking that can be chosen; false where nothing can.
func Cheapest(ranking []Ranked) (Ranked, bool) {
	if len(ranking) == 0 || rung(&ranking[0]) > 1 {
		return Ranked{}, false
	}
	return ranking[0], true
}

// Choose takes the cheapest that fits. Where a cheaper one would be chosen were its breaker not open, its fallbacks serve in
// their order as far as they fit; an empty name says that nothing can be chosen.
func Choose(ask *Ask, ranking []Ranked) (name, reason string) {
	best, ok := Cheapest(ranking)
	for i := range ranking {
		wanted := &ranking[i]
		if !wanted.Fits || !wanted.Shut || ok && best.CostMicro <= wanted.CostMicro {
			continue
		}
		for _, fallback := range wanted.Fallbacks {
			if at := slices.IndexFunc(ranking, func(r Ranked) bool { return r.Name == fallback }); at >= 0 && rung(&ranking[at]) <= 1 {
				return fallback, fmt.Sprintf("it is a fallback of %s: %s", wanted.Name, wanted.Why)
			}
		}
	}
	if !ok {
		return "", none(ranking)
	}
	if len(ask.Failed) > 0 {
		return best.Name, fmt.Sprintf("it is the cheapest that is better than %s", ask.Failed[len(ask.Failed)-1])
	}
	if ask.QualityTarget > 0 {
		return best.Name, fmt.Sprintf("it is the cheapest whose quality is at least %.3g", ask.QualityTarget)
	}
	return best.Name, "it is the cheapest that fits"
}

// none says why nothing can be chosen.
func none(ranking []Ranked) string {
	if len(ranking) == 0 {
		return "there is no model"
	}
	first := &ranking[0]
	return fmt.Sprintf("no model fits: %s: %s", first.Name, first.Why)
}

// Better keeps of a ranking what is better than a model whose result was not good enough: that it falls short of a target is
// nothing against the best there is.
func Better(ask *Ask, options []Option, than string) []Option {
	floor := -1.0
	for i := range options {
		if options[i].Model.Name == than {
			floor = options[i].Low
		}
	}
	return slices.DeleteFunc(slices.Clone(options), func(o Option) bool {
		return o.Model.Name == than || o.Low <= floor || slices.Contains(ask.Failed, o.Model.Name)
	})
}
