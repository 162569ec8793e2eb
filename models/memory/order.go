package memory

import (
	"iter"
	"slices"
)

// chunk is how many keys a piece of an order holds before it is cut in two.
const chunk = 512

// order is a sorted set: short sorted slices, one after the other.
type order[K any] struct {
	compare func(a, b K) int
	pieces  [][]K
	n       int
}

func newOrder[K any](compare func(a, b K) int) *order[K] { return &order[K]{compare: compare} }

// piece is the place of the first piece that may hold k or what follows it.
func (o *order[K]) piece(k K) int {
	i, _ := slices.BinarySearchFunc(o.pieces, k, func(p []K, k K) int { return o.compare(p[len(p)-1], k) })
	return i
}

// add puts k in, once.
func (o *order[K]) add(k K) {
	i := o.piece(k)
	if i == len(o.pieces) {
		if i == 0 || len(o.pieces[i-1]) >= chunk {
			o.pieces = append(o.pieces, append(make([]K, 0, 8), k))
			o.n++
			return
		}
		i--
	}
	at, found := slices.BinarySearchFunc(o.pieces[i], k, o.compare)
	if found {
		return
	}
	o.n++
	o.pieces[i] = slices.Insert(o.pieces[i], at, k)
	if p := o.pieces[i]; len(p) > chunk {
		o.pieces[i] = slices.Clone(p[:chunk/2])
		o.pieces = slices.Insert(o.pieces, i+1, slices.Clone(p[chunk/2:]))
	}
}

// remove takes k out where it is in.
func (o *order[K]) remove(k K) {
	i := o.piece(k)
	if i == len(o.pieces) {
		return
	}
	at, found := slices.BinarySearchFunc(o.pieces[i], k, o.compare)
	if !found {
		return
	}
	o.n--
	o.pieces[i] = slices.Delete(o.pieces[i], at, at+1)
	if len(o.pieces[i]) == 0 {
		o.pieces = slices.Delete(o.pieces, i, i+1)
	}
}

// all goes through the set in order.
func (o *order[K]) all() iter.Seq[K] {
	return func(yield func(K) bool) {
		if o == nil {
			return
		}
		for _, p := range o.pieces {
			for _, k := range p {
				if !yield(k) {
					return
				}
			}
		}
	}
}

// above goes through what follows k in order.
func (o *order[K]) above(k K) iter.Seq[K] {
	return func(yield func(K) bool) {
		if o == nil {
			return
		}
		for i := o.piece(k); i < len(o.pieces); i++ {
			at, found := slices.BinarySearchFunc(o.pieces[i], k, o.compare)
			if found {
				at++
			}
			for _, k := range o.pieces[i][at:] {
				if !yield(k) {
					return
				}
			}
		}
	}
}

// size is how many keys are in.
func (o *order[K]) size() int {
	if o == nil {
		return 0
	}
	return o.n
}

// indexed is a family of orders, one a name; an empty one is forgotten.
type indexed[N comparable, K any] struct {
	compare func(a, b K) int
	of      map[N]*order[K]
}

func newIndexed[N comparable, K any](compare func(a, b K) int) indexed[N, K] {
	return indexed[N, K]{compare: compare, of: map[N]*order[K]{}}
}

// set puts k into the order of this name, or takes it out.
func (x indexed[N, K]) set(name N, k K, in bool) {
	o := x.of[name]
	switch {
	case in && o == nil:
		o = newOrder(x.compare)
		x.of[name] = o
		fallthrough
	case in:
		o.add(k)
	case o != nil:
		if o.remove(k); o.n == 0 {
			delete(x.of, name)
		}
	}
}
