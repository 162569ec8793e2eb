package text

import (
	"math"
	"slices"
)

// Dims is the size of the space terms are hashed into.
const Dims = 1 << 18

// Weights of the sorts of terms beside the word itself: pairs of neighbours
// tell phrases, pieces of words tell relatives ("decoder", "decoding").
const (
	pairWeight  = 0.5
	pieceWeight = 0.35
	pieceRunes  = 4
)

// Term is one coordinate of a sparse vector.
type Term struct {
	Dim    uint32  `json:"dim"`
	Weight float32 `json:"weight"`
}

// Vector hashes a text's terms and answers their damped frequencies, 1+ln(n)
// times the sort's weight, in order of Dim. The inverse document frequency is
// not in it: only an index, which knows all documents, can tell.
func Vector(text string) []Term {
	counts := make(map[uint32]float32, 256)
	sorts := make(map[uint32]float32, 256)
	add := func(hash uint64, weight float32) {
		dim := uint32(hash % Dims)
		counts[dim]++
		if weight > sorts[dim] {
			sorts[dim] = weight
		}
	}
	var before uint64
	for _, word := range Words(text) {
		h := hash(word, 'w')
		add(h, 1)
		if before != 0 {
			add(before*0x9E3779B97F4A7C15^h, pairWeight)
		}
		before = h
		for i := 0; i+pieceRunes <= len(word); i++ {
			add(hash(word[i:i+pieceRunes], 'p'), pieceWeight)
		}
	}
	terms := make([]Term, 0, len(counts))
	for dim, n := range counts {
		terms = append(terms, Term{dim, sorts[dim] * float32(1+math.Log(float64(n)))})
	}
	slices.SortFunc(terms, func(a, b Term) int { return int(a.Dim) - int(b.Dim) })
	return terms
}

// hash is FNV-1a with a final mix, so that short words spread over all bits.
func hash(word string, sort byte) uint64 {
	h := uint64(14695981039346656037)
	h = (h ^ uint64(sort)) * 1099511628211
	for i := range len(word) {
		h = (h ^ uint64(word[i])) * 1099511628211
	}
	h ^= h >> 32
	h *= 0xD6E8FEB86659FD93
	return h ^ h>>32
}
