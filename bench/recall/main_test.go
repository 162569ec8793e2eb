package main

import (
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"nightshift/workers/index"
	"nightshift/workers/text"
)

// build writes an index over a package of the standard library.
func build(t *testing.T) (folder string, claimed index.Evaluation) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(goRoot(t), "src", "net", "http", "*.go"))
	if err != nil || len(files) == 0 {
		t.Skip("no Go distribution here to index")
	}
	var entries []index.Entry
	paths := map[uint32]string{}
	for i, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		paths[uint32(i)] = file
		for _, c := range text.Chunks(file, string(content)) {
			e := index.Entry{Document: uint32(i), Section: uint32(c.Section), Heading: c.Heading, Terms: text.Vector(c.Text)}
			entries = append(entries, e)
			if c.Piece == 0 && c.Heading != "" {
				e.Query, e.Terms = true, text.Vector(c.Heading)
				entries = append(entries, e)
			}
		}
	}
	x := index.Build(entries, paths)
	folder = t.TempDir()
	if _, err := x.Write(folder); err != nil {
		t.Fatal(err)
	}
	return folder, index.Evaluate(x, 10)
}

// Two programs that share no code for it find the same figures in an index.
func TestTheSecondOpinionAgrees(t *testing.T) {
	folder, claimed := build(t)
	f, err := measure(folder)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%+v", f)
	if math.Abs(f.RecallAt10-claimed.RecallAtK) > 0.001 || math.Abs(f.MRR-claimed.MRR) > 0.001 || f.Queries != claimed.Queries {
		t.Errorf("found %+v, claimed was %+v", f, claimed)
	}
	if err := f.judge(claimed.RecallAtK); err != nil {
		t.Error(err)
	}
	if f.judge(claimed.RecallAtK+0.01) == nil {
		t.Error("a wrong claim passed")
	}
	spoilt := f
	spoilt.ShuffledRecallAt = f.RecallAt10 / 2
	if spoilt.judge(-1) == nil {
		t.Error("an index no better than a shuffled one passed")
	}
}

func TestWhatIsNoIndexIsRefused(t *testing.T) {
	folder, _ := build(t)
	if _, err := measure(t.TempDir()); err == nil {
		t.Error("an empty folder was measured")
	}
	versions, err := filepath.Glob(filepath.Join(folder, "v-*", "vectors.bin"))
	if err != nil || len(versions) != 1 {
		t.Fatal(versions, err)
	}
	content, err := os.ReadFile(versions[0])
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(versions[0], content[:len(content)/2], 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := measure(folder); err == nil {
		t.Error("half a file was measured")
	}
	if _, _, err := index.Open(folder); err == nil {
		t.Error("half a file was opened")
	}
}

// goRoot is where the Go distribution's own documents stand.
func goRoot(t *testing.T) string {
	t.Helper()
	out, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		t.Skip("no go command here to ask where its sources are")
	}
	return strings.TrimSpace(string(out))
}

// plainly asks each query of every vector, term by term: what recall must agree with.
func plainly(vectors, queries []row, sections int) (at10, mrr float64) {
	for _, q := range queries {
		best := make([]float64, sections)
		for _, v := range vectors {
			score := 0.0
			for i, d := range q.dims {
				for j, e := range v.dims {
					if d == e {
						score += float64(q.weights[i]) * float64(v.weights[j])
					}
				}
			}
			best[v.section] = max(best[v.section], score)
		}
		if best[q.section] <= 0 {
			continue
		}
		rank := 1
		for _, score := range best {
			if score > best[q.section]+margin {
				rank++
			}
		}
		if rank <= depth {
			at10++
		}
		if rank <= mrrDepth {
			mrr += 1 / float64(rank)
		}
	}
	return at10 / float64(len(queries)), mrr / float64(len(queries))
}

func TestTheQuickWayAgreesWithThePlainOne(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	const sections, top = 60, 40
	some := func(n, terms int) []row {
		out := make([]row, n)
		for i := range out {
			out[i].section = random.IntN(sections)
			for d := range uint32(top + 1) {
				if random.IntN(top) < terms {
					out[i].dims = append(out[i].dims, d)
					out[i].weights = append(out[i].weights, random.Float32()-0.1)
				}
			}
		}
		return out
	}
	for range 20 {
		vectors, queries := some(200, 8), some(50, 2)
		at10, mrr := recall(vectors, queries, sections, top)
		wantAt10, wantMRR := plainly(vectors, queries, sections)
		if math.Abs(at10-wantAt10) > 1e-9 || math.Abs(mrr-wantMRR) > 1e-9 {
			t.Fatalf("recall@10 %v, MRR %v; plainly %v, %v", at10, mrr, wantAt10, wantMRR)
		}
	}
}
