package index

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"math"
	"slices"
	"strings"

	"nightshift/workers/text"
)

// MostQueries bounds the evaluation: of more headings every nth is asked.
const MostQueries = 2000

// Entry is one vector as it was embedded: of a chunk, or of a heading that
// asks for its section.
type Entry struct {
	Query    bool
	Document uint32
	Section  uint32 // within the document
	Heading  string
	Terms    []text.Term
}

// Section is a section as the index knows it.
type Section struct {
	Section  uint32 `json:"section"`
	Document string `json:"document"`
	Heading  string `json:"heading"`
}

// Vector is a weighted vector of length 1 that belongs to a section.
type Vector struct {
	Section uint32
	Terms   []text.Term
}

// Index is an index in memory.
type Index struct {
	Sections []Section
	Vectors  []Vector
	Queries  []Vector
	IDF      []text.Term
	name     string
}

// Build weighs the vectors with the inverse document frequencies of this set
// and numbers the sections. Of the headings only those are asked that stand
// over one section alone and have at least two words: others name no answer.
func Build(entries []Entry, paths map[uint32]string) *Index {
	entries = slices.Clone(entries)
	slices.SortStableFunc(entries, func(a, b Entry) int {
		return cmp.Or(cmp.Compare(a.Document, b.Document), cmp.Compare(a.Section, b.Section))
	})
	x := &Index{}
	numbers := map[[2]uint32]uint32{}
	headings := map[string]int{}
	for _, e := range entries {
		at := [2]uint32{e.Document, e.Section}
		if _, known := numbers[at]; known || e.Query {
			continue
		}
		numbers[at] = uint32(len(x.Sections))
		x.Sections = append(x.Sections, Section{numbers[at], paths[e.Document], e.Heading})
		headings[strings.ToLower(e.Heading)]++
	}
	idf := frequencies(entries)
	var queries []Vector
	for _, e := range entries {
		number, known := numbers[[2]uint32{e.Document, e.Section}]
		if !known {
			continue
		}
		v := Vector{number, weigh(e.Terms, idf)}
		if !e.Query {
			x.Vectors = append(x.Vectors, v)
		} else if headings[strings.ToLower(e.Heading)] == 1 && len(text.Words(e.Heading)) >= 2 && len(v.Terms) > 0 {
			queries = append(queries, v)
		}
	}
	stride := (len(queries) + MostQueries - 1) / MostQueries
	for i := 0; i < len(queries); i += max(stride, 1) {
		x.Queries = append(x.Queries, queries[i])
	}
	for dim, value := range idf {
		x.IDF = append(x.IDF, text.Term{Dim: dim, Weight: value})
	}
	slices.SortFunc(x.IDF, func(a, b text.Term) int { return cmp.Compare(a.Dim, b.Dim) })
	x.name = x.fingerprint()
	return x
}

// frequencies answers ln(1 + n/df) of every dimension over the chunks.
func frequencies(entries []Entry) map[uint32]float32 {
	counts := map[uint32]int{}
	n := 0
	for _, e := range entries {
		if e.Query {
			continue
		}
		n++
		for _, t := range e.Terms {
			counts[t.Dim]++
		}
	}
	idf := make(map[uint32]float32, len(counts))
	for dim, df := range counts {
		idf[dim] = float32(math.Log(1 + float64(n)/float64(df)))
	}
	return idf
}

// Weigh turns raw term frequencies into a unit vector under this index's
// frequencies, as a question must be weighed.
func (x *Index) Weigh(terms []text.Term) []text.Term {
	idf := make(map[uint32]float32, len(x.IDF))
	for _, t := range x.IDF {
		idf[t.Dim] = t.Weight
	}
	return weigh(terms, idf)
}

// weigh drops dimensions the index does not know: they can meet no chunk.
func weigh(terms []text.Term, idf map[uint32]float32) []text.Term {
	out := make([]text.Term, 0, len(terms))
	sum := 0.0
	for _, t := range terms {
		if f := idf[t.Dim]; f > 0 {
			w := t.Weight * f
			out = append(out, text.Term{Dim: t.Dim, Weight: w})
			sum += float64(w) * float64(w)
		}
	}
	if sum > 0 {
		scale := float32(1 / math.Sqrt(sum))
		for i := range out {
			out[i].Weight *= scale
		}
	}
	return out
}

// fingerprint names the version by its content.
func (x *Index) fingerprint() string {
	h := sha256.New()
	for _, s := range x.Sections {
		h.Write([]byte(s.Document + "\x00" + s.Heading + "\x00"))
	}
	for _, vectors := range [][]Vector{x.Vectors, x.Queries} {
		h.Write(binary.LittleEndian.AppendUint32(nil, uint32(len(vectors))))
		for _, v := range vectors {
			h.Write(appendVector(nil, v))
		}
	}
	return "v-" + hex.EncodeToString(h.Sum(nil)[:8])
}

func appendVector(b []byte, v Vector) []byte {
	b = binary.LittleEndian.AppendUint32(b, v.Section)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(v.Terms)))
	for _, t := range v.Terms {
		b = binary.LittleEndian.AppendUint32(b, t.Dim)
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(t.Weight))
	}
	return b
}
