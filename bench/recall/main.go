// Command recall is a second opinion on a retrieval index: it reads the files
// of an index as their format says, with no code of the program that wrote
// them, asks every query of every vector again and prints recall@10, beside the
// recall of the same index with its vectors shuffled among the sections and
// with its vectors replaced by noise.
//
//	go run ./bench/recall --index DIR [--expect 0.62]
package main

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
)

const (
	depth    = 10
	mrrDepth = 100
	margin   = 1e-6 // a difference in score below this is a tie
	sampled  = 400  // queries asked of the two spoilt indexes
)

// row is one record of vectors.bin or queries.bin.
type row struct {
	section int
	dims    []uint32
	weights []float32
}

// figures is what is printed.
type figures struct {
	Index            string  `json:"index"`
	Queries          int     `json:"queries"`
	Sections         int     `json:"sections"`
	Chunks           int     `json:"chunks"`
	RecallAt10       float64 `json:"recall_at_10"`
	MRR              float64 `json:"mrr"`
	ShuffledRecallAt float64 `json:"shuffled_recall_at_10"`
	NoiseRecallAt    float64 `json:"noise_recall_at_10"`
}

func main() {
	folder := flag.String("index", "", "folder of the index (the one that holds CURRENT)")
	expect := flag.Float64("expect", -1, "recall@10 that was claimed; fails when it differs by more than 0.001")
	flag.Parse()
	if *folder == "" {
		fmt.Fprintln(os.Stderr, "recall: --index is needed")
		os.Exit(2)
	}
	f, err := measure(*folder)
	if err == nil {
		encoder := json.NewEncoder(os.Stdout)
		encoder.SetIndent("", "  ")
		err = encoder.Encode(f)
	}
	if err == nil {
		err = f.judge(*expect)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "recall:", err)
		os.Exit(1)
	}
}

// judge fails when the figures do not show that the index is real.
func (f figures) judge(claimed float64) error {
	switch {
	case claimed >= 0 && math.Abs(claimed-f.RecallAt10) > 0.001:
		return fmt.Errorf("recall@10 is %.4f, claimed was %.4f", f.RecallAt10, claimed)
	case f.RecallAt10 < 5*f.ShuffledRecallAt:
		return fmt.Errorf("recall@10 %.4f is below five times that of a shuffled index, %.4f", f.RecallAt10, f.ShuffledRecallAt)
	case f.RecallAt10 <= f.NoiseRecallAt:
		return fmt.Errorf("recall@10 %.4f does not fall when noise takes the vectors' place (%.4f)", f.RecallAt10, f.NoiseRecallAt)
	}
	return nil
}

func measure(folder string) (figures, error) {
	name, err := os.ReadFile(filepath.Join(folder, "CURRENT"))
	if err != nil {
		return figures{}, err
	}
	version := filepath.Join(folder, strings.TrimSpace(string(name)))
	vectors, err := rows(filepath.Join(version, "vectors.bin"))
	if err != nil {
		return figures{}, err
	}
	queries, err := rows(filepath.Join(version, "queries.bin"))
	if err != nil {
		return figures{}, err
	}
	sections := 0
	top := uint32(0)
	for _, v := range append(append([]row{}, vectors...), queries...) {
		sections = max(sections, v.section+1)
		for _, d := range v.dims {
			top = max(top, d)
		}
	}
	if len(queries) == 0 || len(vectors) == 0 {
		return figures{}, fmt.Errorf("%s holds %d vectors and %d queries", version, len(vectors), len(queries))
	}
	f := figures{Index: version, Queries: len(queries), Sections: sections, Chunks: len(vectors)}
	f.RecallAt10, f.MRR = recall(vectors, queries, sections, top)
	some := queries
	if len(some) > sampled {
		some = nil
		for i := range sampled {
			some = append(some, queries[i*len(queries)/sampled])
		}
	}
	random := rand.New(rand.NewPCG(20, 26))
	f.ShuffledRecallAt, _ = recall(shuffled(vectors, random), some, sections, top)
	f.NoiseRecallAt, _ = recall(noise(vectors, top, random), some, sections, top)
	return f, nil
}

// rows reads a file of vectors.
func rows(path string) ([]row, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	in := bufio.NewReaderSize(file, 1<<20)
	magic := make([]byte, 8)
	if _, err := io.ReadFull(in, magic); err != nil || string(magic) != "NSVEC001" {
		return nil, fmt.Errorf("%s is no file of vectors (%q, %v)", path, magic, err)
	}
	var count uint32
	if err := binary.Read(in, binary.LittleEndian, &count); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	out := make([]row, 0, min(count, 1<<20))
	for range count {
		var head struct{ Section, Terms uint32 }
		if err := binary.Read(in, binary.LittleEndian, &head); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		raw := make([]byte, 8*int(head.Terms))
		if _, err := io.ReadFull(in, raw); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		r := row{section: int(head.Section)}
		for at := 0; at < len(raw); at += 8 {
			r.dims = append(r.dims, binary.LittleEndian.Uint32(raw[at:]))
			r.weights = append(r.weights, math.Float32frombits(binary.LittleEndian.Uint32(raw[at+4:])))
		}
		out = append(out, r)
	}
	return out, nil
}

// posting is one vector that has a term.
type posting struct {
	vector int32
	weight float32
}

// inverted lists the vectors by term: those of term d stand from[d] to from[d+1].
type inverted struct {
	from     []int
	postings []posting
}

func invert(vectors []row, top uint32) inverted {
	x := inverted{from: make([]int, int(top)+2)}
	for _, v := range vectors {
		for _, d := range v.dims {
			x.from[d+1]++
		}
	}
	for d := range top + 1 {
		x.from[d+1] += x.from[d]
	}
	x.postings = make([]posting, x.from[top+1])
	next := append([]int{}, x.from...)
	for i, v := range vectors {
		for j, d := range v.dims {
			x.postings[next[d]] = posting{int32(i), v.weights[j]}
			next[d]++
		}
	}
	return x
}

// recall asks each query of every vector, on all cores. A query meets only the vectors that have one of its terms: all
// others score nothing.
func recall(vectors, queries []row, sections int, top uint32) (at10, mrr float64) {
	x := invert(vectors, top)
	ranks := make([]int, len(queries)) // 0: not found
	var next atomic.Int64
	var all sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		all.Go(func() {
			a := asker{vectors: vectors, x: x, scores: make([]float64, len(vectors)), best: make([]float64, sections)}
			for i := int(next.Add(1)) - 1; i < len(queries); i = int(next.Add(1)) - 1 {
				ranks[i] = a.rank(&queries[i])
			}
		})
	}
	all.Wait()
	found, reciprocal := 0, 0.0
	for _, rank := range ranks {
		if rank > 0 && rank <= depth {
			found++
		}
		if rank > 0 && rank <= mrrDepth {
			reciprocal += 1 / float64(rank)
		}
	}
	n := float64(len(queries))
	return float64(found) / n, reciprocal / n
}

// asker is what one goroutine needs to ask queries; scores and best are zero between two of them.
type asker struct {
	vectors []row
	x       inverted
	scores  []float64 // of each vector
	best    []float64 // of each section's vectors
	met     []int32   // vectors that have a score
}

// rank is how many sections, the query's own among them, score as well as that one; 0 when nothing of it has a term of
// the query.
func (a *asker) rank(q *row) int {
	a.met = a.met[:0]
	for i, d := range q.dims {
		for _, p := range a.x.postings[a.x.from[d]:a.x.from[d+1]] {
			if a.scores[p.vector] == 0 {
				a.met = append(a.met, p.vector)
			}
			a.scores[p.vector] += float64(q.weights[i]) * float64(p.weight)
		}
	}
	for _, v := range a.met {
		section := a.vectors[v].section
		a.best[section] = max(a.best[section], a.scores[v])
		a.scores[v] = 0
	}
	own, rank := a.best[q.section], 1
	for _, v := range a.met {
		if section := a.vectors[v].section; a.best[section] > 0 {
			if a.best[section] > own+margin {
				rank++
			}
			a.best[section] = 0 // counted
		}
	}
	if own <= 0 {
		return 0
	}
	return rank
}

// shuffled deals the vectors out to the sections anew.
func shuffled(vectors []row, random *rand.Rand) []row {
	out := append([]row{}, vectors...)
	random.Shuffle(len(out), func(i, j int) { out[i].section, out[j].section = out[j].section, out[i].section })
	return out
}

// noise keeps each vector's number of terms and length, nothing else.
func noise(vectors []row, top uint32, random *rand.Rand) []row {
	out := make([]row, len(vectors))
	for i, v := range vectors {
		r := row{section: v.section, dims: make([]uint32, len(v.dims)), weights: make([]float32, len(v.dims))}
		sum := 0.0
		for j := range r.dims {
			r.dims[j] = random.Uint32N(top + 1)
			w := random.Float64()
			r.weights[j] = float32(w)
			sum += w * w
		}
		for j := range r.weights {
			r.weights[j] = float32(float64(r.weights[j]) / math.Sqrt(sum))
		}
		out[i] = r
	}
	return out
}
