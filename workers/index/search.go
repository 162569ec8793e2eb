package index

import (
	"cmp"
	"slices"

	"nightshift/workers/text"
)

// tie is the least difference that counts: sums taken in another order differ
// by less.
const tie = 1e-6

// mrrDepth is how deep a rank still counts for the mean reciprocal rank.
const mrrDepth = 100

// Hit is a section with its score.
type Hit struct {
	Section Section `json:"section"`
	Score   float64 `json:"score"`
}

// Searcher answers questions over an index; it is for one goroutine.
type Searcher struct {
	index    *Index
	postings map[uint32][]posting
	chunk    []float64 // score of each chunk of the question at hand
	section  []float64
	touched  []uint32
}

type posting struct {
	chunk  uint32
	weight float32
}

// NewSearcher turns the vectors into postings.
func NewSearcher(x *Index) *Searcher {
	s := &Searcher{
		index: x, postings: map[uint32][]posting{},
		chunk: make([]float64, len(x.Vectors)), section: make([]float64, len(x.Sections)),
	}
	for i, v := range x.Vectors {
		for _, t := range v.Terms {
			s.postings[t.Dim] = append(s.postings[t.Dim], posting{uint32(i), t.Weight})
		}
	}
	return s
}

// score fills the sections' scores and answers those above zero.
func (s *Searcher) score(question []text.Term) []uint32 {
	s.touched = s.touched[:0]
	for _, t := range question {
		for _, p := range s.postings[t.Dim] {
			if s.chunk[p.chunk] == 0 {
				s.touched = append(s.touched, p.chunk)
			}
			s.chunk[p.chunk] += float64(t.Weight) * float64(p.weight)
		}
	}
	var sections []uint32
	for _, c := range s.touched {
		at := s.index.Vectors[c].Section
		if s.section[at] == 0 {
			sections = append(sections, at)
		}
		s.section[at] = max(s.section[at], s.chunk[c])
		s.chunk[c] = 0
	}
	return sections
}

// Search answers the k best sections for a weighed question.
func (s *Searcher) Search(question []text.Term, k int) []Hit {
	sections := s.score(question)
	hits := make([]Hit, 0, len(sections))
	for _, at := range sections {
		hits = append(hits, Hit{s.index.Sections[at], s.section[at]})
		s.section[at] = 0
	}
	slices.SortFunc(hits, func(a, b Hit) int {
		return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(a.Section.Section, b.Section.Section))
	})
	return hits[:min(k, len(hits))]
}

// rank is the place of the wanted section, 0 when it scores nothing.
func (s *Searcher) rank(question []text.Term, wanted uint32) int {
	sections := s.score(question)
	own, rank := s.section[wanted], 0
	if own > 0 {
		rank = 1
	}
	for _, at := range sections {
		if own > 0 && s.section[at] > own+tie {
			rank++
		}
		s.section[at] = 0
	}
	return rank
}

// Evaluation is how well headings find their own sections.
type Evaluation struct {
	K         int     `json:"k"`
	Queries   int     `json:"queries"`
	Sections  int     `json:"sections"`
	Chunks    int     `json:"chunks"`
	RecallAt1 float64 `json:"recall_at_1"`
	RecallAtK float64 `json:"recall_at_k"`
	MRR       float64 `json:"mrr"`
	// Chance is what a random order would reach: k of all sections.
	Chance float64 `json:"chance"`
}

// Evaluate asks every query of the index.
func Evaluate(x *Index, k int) Evaluation {
	s := NewSearcher(x)
	e := Evaluation{K: k, Queries: len(x.Queries), Sections: len(x.Sections), Chunks: len(x.Vectors)}
	if e.Queries == 0 {
		return e
	}
	first, within, reciprocal := 0, 0, 0.0
	for _, q := range x.Queries {
		rank := s.rank(q.Terms, q.Section)
		if rank == 1 {
			first++
		}
		if rank > 0 && rank <= k {
			within++
		}
		if rank > 0 && rank <= mrrDepth {
			reciprocal += 1 / float64(rank)
		}
	}
	n := float64(e.Queries)
	e.RecallAt1, e.RecallAtK, e.MRR = float64(first)/n, float64(within)/n, reciprocal/n
	e.Chance = min(1, float64(k)/float64(e.Sections))
	return e
}
