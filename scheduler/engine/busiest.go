package engine

import (
	"cmp"
	"slices"

	"nightshift/models"
)

// otherName is what everything without a name of its own is shown as.
const otherName = "other"

// rankEvery is how often the busiest are found anew, mostKnown how many names are remembered until then.
const (
	rankEvery = 300_000_000
	mostKnown = 10_000
)

// busiest keeps a figure for each of many names and shows those of the busiest; the rest share one. The first names are
// shown at once. Later a busier one takes the place of a shown one: from then on it counts on its own, what it had counted
// before stays with the others, and what leaves keeps its figure for when it comes back. So no figure ever goes down, but
// that of a name which was forgotten begins anew.
type busiest[T any] struct {
	most   int
	shown  int
	rows   map[string]*named[T]
	rest   T
	ranked models.Instant
}

type named[T any] struct {
	name  string
	shown bool
	busy  float64 // uses, those before the last rankings counting less and less
	own   T
}

func newBusiest[T any](most int) busiest[T] {
	return busiest[T]{most: most, rows: map[string]*named[T]{}}
}

func (b *busiest[T]) of(name string) *named[T] {
	n := b.rows[name]
	if n == nil {
		if len(b.rows) >= mostKnown && name != otherName {
			return b.of(otherName)
		}
		n = &named[T]{name: name}
		if b.shown < b.most && name != otherName {
			n.shown = true
			b.shown++
		}
		b.rows[name] = n
	}
	return n
}

// at is the figure that a use of the name counts in.
func (b *busiest[T]) at(n *named[T]) *T {
	n.busy++
	if n.shown {
		return &n.own
	}
	return &b.rest
}

// rank finds the busiest anew when it is time; it says whether it did. A name must be twice as busy as the one whose place
// it takes, so that names which are much alike don't come and go. Names that nobody uses any more are forgotten.
func (b *busiest[T]) rank(now models.Instant) bool {
	if b.ranked == 0 {
		b.ranked = now
	}
	if now-b.ranked < rankEvery {
		return false
	}
	b.ranked = now
	var shown, hidden []*named[T]
	for _, n := range b.rows { // any order: sorted below
		switch {
		case n.shown:
			shown = append(shown, n)
		case n.name != otherName:
			hidden = append(hidden, n)
		}
	}
	slices.SortFunc(shown, func(a, b *named[T]) int { return cmp.Or(cmp.Compare(a.busy, b.busy), cmp.Compare(a.name, b.name)) })
	slices.SortFunc(hidden, func(a, b *named[T]) int { return cmp.Or(cmp.Compare(b.busy, a.busy), cmp.Compare(a.name, b.name)) })
	for i := range min(len(shown), len(hidden)) {
		if hidden[i].busy <= 2*shown[i].busy {
			break
		}
		hidden[i].shown, shown[i].shown = true, false
	}
	for name, n := range b.rows { // any order: each on its own
		if n.busy /= 2; n.busy < 0.1 && !n.shown {
			delete(b.rows, name)
		}
	}
	return true
}

// each shows the figures by name, the others' last.
func (b *busiest[T]) each(show func(name string, own *T)) {
	var shown []*named[T]
	for _, n := range b.rows { // any order: sorted below
		if n.shown {
			shown = append(shown, n)
		}
	}
	slices.SortFunc(shown, func(a, b *named[T]) int { return cmp.Compare(a.name, b.name) })
	for _, n := range shown {
		show(n.name, &n.own)
	}
	show(otherName, &b.rest)
}
