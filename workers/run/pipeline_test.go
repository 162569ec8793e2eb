package run

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"nightshift/workers/index"
	"nightshift/workers/protocol"
	"nightshift/workers/text"
)

// The whole pipeline over real documents: packages of the standard library.
func TestPipelineOverRealDocuments(t *testing.T) {
	root, data := standardLibrary(t), t.TempDir()
	s := stationed(t, Options{Data: data, Documents: []string{root}})
	var paths []string
	for _, folder := range []string{"strings", "bytes", "bufio", "sort", "net/url", "time", "encoding/json", "archive/tar"} {
		files, err := filepath.Glob(filepath.Join(root, folder, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			below, err := filepath.Rel(root, f)
			if err != nil {
				t.Fatal(err)
			}
			paths = append(paths, below)
		}
	}
	ws := "night-one"
	ingested := done[ingestOut](t, s, "document.ingest", fields{"workspace": ws, "root": root, "paths": paths})
	if ingested.Documents != len(paths) || len(ingested.Bad) != 0 {
		t.Fatalf("ingested %+v of %d", ingested, len(paths))
	}
	var items []string
	for i, path := range paths {
		cut := done[chunkOut](t, s, "document.chunk", fields{"workspace": ws, "root": root, "path": path, "document": i})
		for n := range cut.Chunks {
			items = append(items, fmt.Sprintf("%d:%d", i, n))
		}
	}
	batches := 0
	for from := 0; from < len(items); from += 100 {
		out := done[embedOut](t, s, "text.embed", fields{"workspace": ws, "batch": batches, "items": items[from:min(from+100, len(items))]})
		if len(out.Missing) != 0 || out.Model != builtIn {
			t.Fatalf("embedded %+v", out)
		}
		batches++
	}
	built := done[indexOut](t, s, "index.update", fields{"workspace": ws, "batches": batches})
	again := done[indexOut](t, s, "index.update", fields{"workspace": ws, "batches": batches})
	if built.Version != again.Version || built.Chunks != len(items) {
		t.Errorf("built %+v, then %+v, of %d chunks", built, again, len(items))
	}
	warmed := done[warmOut](t, s, "cache.warm", fields{"workspace": ws, "questions": []string{"trim white space around a string", "xqjvkw"}})
	if warmed.Answered != 1 {
		t.Errorf("warmed %+v", warmed)
	}
	e := done[index.Evaluation](t, s, "eval.retrieval", fields{"workspace": ws, "k": 10})
	checkEvaluation(t, filepath.Join(data, ws, "index"), e)
	done[summarizeOut](t, s, "text.summarize", fields{"workspace": ws, "group": 0, "documents": []fields{{"document": 0, "path": paths[0]}}})
	report := done[reportOut](t, s, "report.write", fields{"workspace": ws, "title": "A <b>night</b>"})
	page, err := os.ReadFile(report.Path)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"A &lt;b&gt;night&lt;/b&gt;", fmt.Sprintf("%.4f", e.RecallAtK), paths[0]} {
		if !strings.Contains(string(page), want) {
			t.Errorf("the report lacks %q", want)
		}
	}
	done[reportOut](t, s, "report.write", fields{"workspace": ws, "format": "markdown"})
}

// checkEvaluation holds the evaluation against a shuffled index and against
// noise: both must be far worse, or it measures nothing.
func checkEvaluation(t *testing.T, folder string, e index.Evaluation) {
	t.Helper()
	x, _, err := index.Open(folder)
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(1, 2))
	shuffled := *x
	shuffled.Vectors = append([]index.Vector{}, x.Vectors...)
	rng.Shuffle(len(shuffled.Vectors), func(i, j int) {
		shuffled.Vectors[i].Section, shuffled.Vectors[j].Section = shuffled.Vectors[j].Section, shuffled.Vectors[i].Section
	})
	noise := *x
	noise.Vectors = nil
	for _, v := range x.Vectors {
		terms := make([]text.Term, len(v.Terms))
		for i := range terms {
			terms[i] = text.Term{Dim: rng.Uint32N(text.Dims), Weight: rng.Float32()}
		}
		noise.Vectors = append(noise.Vectors, index.Vector{Section: v.Section, Terms: terms})
	}
	byShuffle, byNoise := index.Evaluate(&shuffled, 10), index.Evaluate(&noise, 10)
	t.Logf("recall@10 %.3f, shuffled %.3f, noise %.3f, MRR %.3f over %d headings", e.RecallAtK, byShuffle.RecallAtK, byNoise.RecallAtK, e.MRR, e.Queries)
	if e.Queries < 200 || e.RecallAtK < 5*byShuffle.RecallAtK || e.RecallAtK < 5*byNoise.RecallAtK || e.RecallAtK < 0.3 {
		t.Errorf("recall@10 %.3f, shuffled %.3f, noise %.3f over %d headings", e.RecallAtK, byShuffle.RecallAtK, byNoise.RecallAtK, e.Queries)
	}
}

func TestBadDocumentsFailAloneAndRecover(t *testing.T) {
	root, data := t.TempDir(), t.TempDir()
	s := stationed(t, Options{Data: data, Documents: []string{root}})
	put := func(name string, content []byte) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(root, name), content, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	put("good.md", []byte("# A heading of two words\n"+strings.Repeat("Some text that says a thing. ", 20)))
	put("binary.md", []byte("PNG\x00\x01"))
	put("latin1.md", []byte("caf\xe9"))
	put("large.md", make([]byte, 5000))
	if err := os.Symlink("nowhere.md", filepath.Join(root, "dangling.md")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/etc/passwd", filepath.Join(root, "escape.md")); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(root, "folder.md"), 0o755); err != nil {
		t.Fatal(err)
	}
	paths := []string{"good.md", "binary.md", "latin1.md", "large.md", "dangling.md", "escape.md", "folder.md"}
	out := done[ingestOut](t, s, "document.ingest", fields{"workspace": "w", "root": root, "paths": paths, "max_bytes": 4096})
	if out.Documents != 1 || len(out.Bad) != 6 {
		t.Fatalf("ingested %+v", out)
	}
	for i, want := range []string{"", "not text", "not text", "too large", "unreadable", "unreadable", "unreadable"} {
		if want == "" {
			continue
		}
		err := failed(t, s, "document.chunk", fields{"workspace": "w", "root": root, "path": paths[i], "document": i, "max_bytes": 4096})
		if !strings.Contains(err.Message, want) || !strings.Contains(err.Message, paths[i]) {
			t.Errorf("%s failed with %s: %s", paths[i], err.Class, err.Message)
		}
		switch err.Class {
		case protocol.ClassInvalidInput, protocol.ClassNotFound, protocol.ClassPermissionDenied:
		default:
			t.Errorf("%s: class %s would be tried again in vain", paths[i], err.Class)
		}
	}
	put("latin1.md", []byte("café, mended by hand"))
	if cut := done[chunkOut](t, s, "document.chunk", fields{"workspace": "w", "root": root, "path": "latin1.md", "document": 2}); cut.Chunks != 1 {
		t.Errorf("the mended document gave %+v", cut)
	}
}

func TestFoldersAreNotLeft(t *testing.T) {
	root, data := t.TempDir(), t.TempDir()
	s := stationed(t, Options{Data: data, Documents: []string{root}})
	for _, payload := range []fields{
		{"workspace": "../out", "root": root, "paths": []string{"a"}},
		{"workspace": "/abs", "root": root, "paths": []string{"a"}},
		{"workspace": "", "root": root, "paths": []string{"a"}},
		{"workspace": "w", "root": "/etc"},
		{"workspace": "w", "root": root + "/../.."},
		{"workspace": "w", "root": "."},
	} {
		if err := failed(t, s, "document.ingest", payload); err.Class != protocol.ClassInvalidInput && err.Class != protocol.ClassPermissionDenied {
			t.Errorf("%v failed with %s: %s", payload, err.Class, err.Message)
		}
	}
}

func TestIngestSinceWatermark(t *testing.T) {
	root := t.TempDir()
	s := stationed(t, Options{Data: t.TempDir(), Documents: []string{root}})
	for _, name := range []string{"a.md", "b.md"} {
		if err := os.WriteFile(filepath.Join(root, name), []byte("text"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	first := done[ingestOut](t, s, "document.ingest", fields{"workspace": "w", "root": root})
	if first.Documents != 2 {
		t.Fatalf("first: %+v", first)
	}
	version := int64(3)
	mark := []byte(`"` + first.Newest.Format("2006-01-02T15:04:05.999999Z07:00") + `"`)
	with := func(l *protocol.Lease) { l.Watermark = &protocol.Watermark{Value: mark, Version: &version} }
	task := s.Submit("document.ingest", fields{"workspace": "w", "root": root}, with)
	s.AwaitState(task, "succeeded")
	if task.Outcomes[0].Watermark != nil || !strings.Contains(string(task.Outcomes[0].Result), `"unchanged":2`) {
		t.Errorf("nothing new gave %s", task.Outcomes[0].Result)
	}
	changed := first.Newest.Add(1e9)
	if err := os.Chtimes(filepath.Join(root, "b.md"), changed, changed); err != nil {
		t.Fatal(err)
	}
	task = s.Submit("document.ingest", fields{"workspace": "w", "root": root}, with)
	s.AwaitState(task, "succeeded")
	moved := task.Outcomes[0].Watermark
	if moved == nil || *moved.Version != 3 || !strings.Contains(string(task.Outcomes[0].Result), `"unchanged":1`) {
		t.Errorf("one changed file gave %s and watermark %+v", task.Outcomes[0].Result, moved)
	}
}
