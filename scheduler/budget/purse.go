package budget

import (
	"math"

	"nightshift/models"
)

// While nothing is known of what a task costs it counts as this part of the limit, and few such run at once.
const (
	UnknownShare = 20
	UnknownMost  = 4
)

// mostMicro is the most that tokens are expected to cost: a thousand million dollars, the highest limit there is.
const mostMicro = 1_000_000_000_000_000

// Many is how many tasks fit where nothing bounds them.
const Many = math.MaxInt32

// Ask is what a task is expected to spend.
type Ask struct {
	models.Amount
	KnowsMicro, KnowsTokens bool // else nobody can tell
}

// Or is what is known of a, and of what a says nothing what o knows.
func (a Ask) Or(o Ask) Ask {
	if !a.KnowsMicro {
		a.Micro, a.KnowsMicro = o.Micro, o.KnowsMicro
	}
	if !a.KnowsTokens {
		a.Tokens, a.KnowsTokens = o.Tokens, o.KnowsTokens
	}
	return a
}

// Said is what a task's own row says: money as in models.Task, and tokens.
func Said(micro, tokens int64) (a Ask) {
	a.Micro, a.KnowsMicro = max(0, micro), micro != 0
	a.Tokens, a.KnowsTokens = tokens, tokens != 0
	return a
}

// Expected is what tasks are expected to spend of which nothing is said: what was seen of their like, and what their model costs.
type Expected struct {
	Ask
	PerMillion int64 // millionths of a dollar that a million tokens cost, 0: that is not known. It counts where no cost was seen
}

// Of is what a task is expected to spend that says something itself: its own word goes first, and where neither says what it costs
// its tokens do.
func (x Expected) Of(said Ask) Ask {
	a := said.Or(x.Ask)
	if !a.KnowsMicro && a.KnowsTokens && x.PerMillion > 0 {
		a.Micro, a.KnowsMicro = int64(min(math.Ceil(float64(a.Tokens)*float64(x.PerMillion)/1e6), mostMicro)), true
	}
	return a
}

// Purse is the limits of a period, what was spent of it, and what running attempts are expected to spend.
type Purse struct {
	LimitMicro, LimitTokens *int64        // nil: no limit
	Spent                   models.Amount // less than nothing where more was presumed than was spent
	Reserved                models.Amount // for attempts of which that is known
	Unknown                 models.Amount // how many attempts run of which it is not
}

// side is one of the two things that a purse holds.
type side struct {
	limit                    *int64
	spent, reserved, unknown int64
}

func (p *Purse) micro() side {
	return side{p.LimitMicro, p.Spent.Micro, p.Reserved.Micro, p.Unknown.Micro}
}

func (p *Purse) tokens() side {
	return side{p.LimitTokens, p.Spent.Tokens, p.Reserved.Tokens, p.Unknown.Tokens}
}

// weighs is how much an ask counts.
func (s side) weighs(ask int64, known bool) int64 {
	if known || s.limit == nil {
		return ask
	}
	return max(*s.limit/UnknownShare, 1)
}

// held is what is reserved.
func (s side) held() int64 { return s.reserved + s.unknown*s.weighs(0, false) }

func (s side) left() int64 { return *s.limit - s.spent - s.held() }

// fits is how many like tasks may start.
func (s side) fits(ask int64, known bool) int64 {
	if s.limit == nil {
		return Many
	}
	ask = s.weighs(ask, known)
	n, left := int64(Many), s.left()
	switch {
	case left < ask:
		return 0
	case ask > 0:
		n = min(n, left/ask)
	}
	if !known {
		n = min(n, UnknownMost-s.unknown)
	}
	return max(0, n)
}

// Fits is how many tasks that ask for as much may start beside each other.
func (p *Purse) Fits(a Ask) int64 {
	return min(p.micro().fits(a.Micro, a.KnowsMicro), p.tokens().fits(a.Tokens, a.KnowsTokens))
}

// Covers says that a task may start.
func (p *Purse) Covers(a Ask) bool { return p.Fits(a) > 0 }

// Exhausted says that what was spent, what is reserved and what a task asks for pass a limit together.
func (p *Purse) Exhausted(a Ask) bool {
	over := func(s side, ask int64, known bool) bool {
		return s.limit != nil && s.left() < s.weighs(ask, known)
	}
	return over(p.micro(), a.Micro, a.KnowsMicro) || over(p.tokens(), a.Tokens, a.KnowsTokens)
}

// SpentUp says that what was spent alone leaves too little: nothing that ends now makes room for the task.
func (p *Purse) SpentUp(a Ask) bool {
	bare := *p
	bare.Reserved, bare.Unknown = models.Amount{}, models.Amount{}
	return bare.Exhausted(a)
}

// Weighs is how much a task counts: what it asks for, and a part of the limit where that is not known.
func (p *Purse) Weighs(a Ask) models.Amount {
	return models.Amount{Micro: p.micro().weighs(a.Micro, a.KnowsMicro), Tokens: p.tokens().weighs(a.Tokens, a.KnowsTokens)}
}

// Held is what is reserved in all.
func (p *Purse) Held() models.Amount {
	return models.Amount{Micro: p.micro().held(), Tokens: p.tokens().held()}
}

// Reserve adds n attempts that ask for as much; n below zero takes them off again.
func (p *Purse) Reserve(a Ask, n int64) {
	if a.KnowsMicro {
		p.Reserved.Micro += n * a.Micro
	} else {
		p.Unknown.Micro += n
	}
	if a.KnowsTokens {
		p.Reserved.Tokens += n * a.Tokens
	} else {
		p.Unknown.Tokens += n
	}
}

// Size is by what tasks are ordered that wait for the purse: of those of which it does not cover the smaller it surely does
// not cover the larger. Room is what it then has left.
func (p *Purse) Size(a Ask) int64 {
	if p.LimitMicro != nil {
		return p.micro().weighs(a.Micro, a.KnowsMicro)
	}
	return p.tokens().weighs(a.Tokens, a.KnowsTokens)
}

// Room is the largest Size that may be covered.
func (p *Purse) Room() int64 {
	switch {
	case p.LimitMicro != nil:
		return p.micro().left()
	case p.LimitTokens != nil:
		return p.tokens().left()
	}
	return math.MaxInt64
}

// Used is which part of its limits was spent, of the one that is nearer to its end. A limit of nothing is used up by
// whatever is spent.
func (p *Purse) Used() float64 {
	used := 0.0
	for _, s := range [...]side{p.micro(), p.tokens()} {
		switch {
		case s.limit == nil || s.spent <= 0:
		case *s.limit == 0:
			return math.Inf(1)
		default:
			used = max(used, float64(s.spent)/float64(*s.limit))
		}
	}
	return used
}

// Reached is the largest of some thresholds that was reached, 0 when none was.
func (p *Purse) Reached(thresholds []float64) (most float64) {
	used := p.Used()
	for _, t := range thresholds {
		if t <= used {
			most = max(most, t)
		}
	}
	return most
}
