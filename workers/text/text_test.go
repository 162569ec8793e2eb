package text

import (
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

func TestWordsSplitNames(t *testing.T) {
	got := Words("ReadFrom reads HTTPServer's bytes; x utf8Rune snake_case, classes")
	want := []string{"read", "from", "read", "http", "server", "byte", "utf8", "rune", "snake", "case", "classe"}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("words %q", got)
	}
}

const goFile = `// Package p does things.
package p

import "io"

// ReadAll reads from r until an error or EOF and returns the data it read.
// A successful call returns err == nil, not err == EOF; readall never guesses.
func ReadAll(r io.Reader) ([]byte, error) {
	return nil, nil // by ReadAll itself, unlike ReadAllTwice
}

// Len is the number of unread bytes of the buffer, always at least nothing at all
// and at most what was written to it before anybody read.
func (b *Buffer[T]) Len() int { return b.Len() }

const (
	// One is one.
	One = 1
)
`

func TestGoSections(t *testing.T) {
	var headings []string
	for _, s := range Sections("p.go", goFile) {
		headings = append(headings, s.Heading)
		for _, name := range []string{"ReadAll ", "readall", "Len("} {
			if s.Heading != "" && strings.Contains(s.Body, name) {
				t.Errorf("section %s still holds %q:\n%s", s.Heading, name, s.Body)
			}
		}
		if s.Heading == "ReadAll" && !strings.Contains(s.Body, "ReadAllTwice") {
			t.Error("a longer name was cut apart")
		}
	}
	if !reflect.DeepEqual(headings, []string{"ReadAll", "Buffer.Len", ""}) {
		t.Errorf("headings %q", headings)
	}
}

func TestMarkdownAndMarkupSections(t *testing.T) {
	long := strings.Repeat("All about lanes and how they fill up. ", 5)
	md := Sections("a.md", "intro\n# The `Lane` {#lane}\n"+long+"the lane\n```\n# no heading\n```\n## Tiny\nx\n")
	if len(md) != 2 || md[0].Heading != "The Lane" || strings.Contains(strings.ToLower(md[0].Body), "the lane") || !strings.Contains(md[0].Body, "# no heading") {
		t.Errorf("markdown gave %+v", md)
	}
	html := Sections("a.html", "<style>h2 {}</style><h2 id=x>Type <i>parameters</i></h2><p>"+long+"&lt;b&gt;</p><script>evil()</script>")
	if len(html) != 1 || html[0].Heading != "Type parameters" || strings.Contains(html[0].Body, "evil") || !strings.Contains(html[0].Body, "<b>") {
		t.Errorf("markup gave %+v", html)
	}
}

// Whatever the document, chunks hold their size, lose no word of the sections
// and never hold their own heading.
func TestChunksKeepTheText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ending := rapid.SampledFrom([]string{"a.md", "a.go", "a.html", "a.txt"}).Draw(t, "path")
		content := rapid.StringOf(rapid.RuneFrom([]rune("abc Ü\n#.`/{}<>h2func (type"))).Draw(t, "content")
		sections, chunks := Sections(ending, content), Chunks(ending, content)
		whole := make([]string, len(sections))
		for _, c := range chunks {
			if len(c.Text) > ChunkBytes || c.Section >= len(sections) || c.Heading != sections[c.Section].Heading {
				t.Fatalf("chunk %+v of %d sections", c, len(sections))
			}
			whole[c.Section] += c.Text
		}
		for i, s := range sections {
			squeeze := func(text string) string { return strings.Join(strings.Fields(text), "") }
			if squeeze(whole[i]) != squeeze(s.Body) {
				t.Fatalf("section %d lost text: %q became %q", i, s.Body, whole[i])
			}
		}
	})
}

func TestVectorIsSortedAndDeterministic(t *testing.T) {
	a, b := Vector("the decoder decodes decoding, the decoder"), Vector("the decoder decodes decoding, the decoder")
	if !reflect.DeepEqual(a, b) {
		t.Error("the same text gave two vectors")
	}
	if !slices.IsSortedFunc(a, func(x, y Term) int { return int(x.Dim) - int(y.Dim) }) {
		t.Error("dimensions are not in order")
	}
	for _, term := range a {
		if term.Dim >= Dims || term.Weight <= 0 || math.IsNaN(float64(term.Weight)) {
			t.Errorf("term %+v", term)
		}
	}
	if dot(a, Vector("a decoder decodes")) <= dot(a, Vector("quite unlike words")) {
		t.Error("kin is not nearer than strangers")
	}
}

// A table of numbers, a line of data in code, a text without a full stop: what a summary quotes has a bound.
func TestASummaryQuotesNothingWithoutEnd(t *testing.T) {
	for name, doc := range map[string]struct{ path, text string }{
		"words":         {"a.txt", strings.Repeat("zahlen über zahlen ", 80_000)},
		"one word":      {"a.txt", "what follows is " + strings.Repeat("é", 700_000)},
		"code":          {"a.go", "var table = []int{" + strings.Repeat("1234, ", 200_000) + "}"},
		"many of these": {"a.md", strings.Repeat(strings.Repeat("one and another ", 400)+"end. ", 20)},
	} {
		for _, unit := range Summary(doc.path, doc.text, 4) {
			if len(unit) > MostUnitBytes || !utf8.ValidString(unit) || !strings.HasSuffix(unit, " …") {
				t.Errorf("%s: a unit of %d bytes: %.40q … %q", name, len(unit), unit, unit[max(0, len(unit)-20):])
			}
		}
		if len(Summary(doc.path, doc.text, 4)) == 0 {
			t.Errorf("%s: nothing is left", name)
		}
	}
	if whole := "A sentence of an ordinary length stays as it is."; Summary("a.md", whole, 1)[0] != whole {
		t.Error("an ordinary sentence was cut")
	}
}

func TestSummaryQuotesWhatMattersInOrder(t *testing.T) {
	doc := "Lanes hold tasks. A lane has a limit of running tasks. The weather was fine on that day. " +
		"Tasks of a lane wait for the limit of the lane. Bananas are yellow. Each lane orders its waiting tasks by age. Copyright 2026 someone else.\n"
	got := Summary("a.md", doc, 2)
	if len(got) != 2 || !strings.Contains(got[0], "lane") || !strings.Contains(got[1], "lane") {
		t.Errorf("summary %q", got)
	}
	if strings.Index(doc, got[0]) >= strings.Index(doc, got[1]) {
		t.Error("the order of the document was lost")
	}
	if all := Summary("a.md", "Only one sentence here. And a second one there.", 5); len(all) != 2 {
		t.Errorf("a short text gave %q", all)
	}
}
