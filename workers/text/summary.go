package text

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"unicode/utf8"
)

// Bounds of a summary's work: beyond MostUnits a document is thinned evenly,
// because the comparison grows with the square, and of a unit of more than
// MostUnitBytes (a table of numbers is one sentence to a reader of full stops)
// the beginning is kept.
const (
	MostUnits     = 1000
	MostUnitBytes = 500

	rankRounds = 30
	damping    = 0.85
)

// Summary answers the n units of a document (sentences of prose, lines of
// code) that say most, in their order. It is extractive: each unit is compared
// with every other by the cosine of their term vectors, and the ranks of that
// graph are found as those of linked pages are (TextRank).
func Summary(path, content string, n int) []string {
	units := thin(Units(path, content), MostUnits)
	if len(units) <= n {
		return units
	}
	ranks := centrality(units)
	for i, u := range units {
		ranks[i] *= worth(path, u)
	}
	order := make([]int, len(units))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(ranks[b], ranks[a]) })
	chosen := distinct(units, order, n)
	slices.Sort(chosen)
	out := make([]string, len(chosen))
	for i, at := range chosen {
		out[i] = units[at]
	}
	return out
}

// worth tells prose, which explains, from code, which only shows, and both
// from what every file says.
func worth(path, unit string) float64 {
	switch {
	case strings.HasPrefix(unit, "Copyright ") || strings.HasPrefix(unit, "go:"):
		return 0
	case strings.HasSuffix(path, ".go") && !prose(unit):
		return 0.4
	default:
		return 1
	}
}

// prose begins with a capital and ends with a full stop.
func prose(unit string) bool {
	return unit[0] >= 'A' && unit[0] <= 'Z' && unit[len(unit)-1] == '.'
}

// distinct takes the best n of which no two say the same.
func distinct(units []string, order []int, n int) []int {
	var chosen []int
	seen := map[string]bool{}
	for _, at := range order {
		if key := strings.Join(Words(units[at]), " "); !seen[key] {
			seen[key] = true
			chosen = append(chosen, at)
		}
		if len(chosen) == n {
			break
		}
	}
	return chosen
}

func thin(units []string, most int) []string {
	if len(units) <= most {
		return units
	}
	out := make([]string, most)
	for i := range out {
		out[i] = units[i*len(units)/most]
	}
	return out
}

// Units takes a document apart into what a summary may quote, none longer than
// MostUnitBytes.
func Units(path, content string) []string {
	if strings.HasSuffix(path, ".html") || strings.HasSuffix(path, ".htm") {
		content = plain(markupSilent.ReplaceAllString(content, " "))
	}
	var out []string
	var said strings.Builder
	end := func() {
		for _, s := range sentences(said.String()) {
			if s = short(s); len(Words(s)) >= 3 {
				out = append(out, s)
			}
		}
		said.Reset()
	}
	code := strings.HasSuffix(path, ".go")
	for line := range strings.Lines(content) {
		line = strings.TrimSpace(line)
		comment, isComment := strings.CutPrefix(line, "//")
		switch {
		case code && !isComment:
			end()
			if line = short(line); len(Words(line)) >= 3 {
				out = append(out, line)
			}
		case line == "" || comment == "" && isComment:
			end()
		default:
			said.WriteString(strings.TrimSpace(comment) + " ")
		}
	}
	end()
	return out
}

// short cuts a unit that is too long, where a word ends if there is one.
func short(unit string) string {
	const mark = " …"
	if len(unit) <= MostUnitBytes {
		return unit
	}
	end := MostUnitBytes - len(mark)
	for !utf8.RuneStart(unit[end]) {
		end--
	}
	cut := unit[:end]
	if space := strings.LastIndexByte(cut, ' '); space > MostUnitBytes/2 {
		cut = cut[:space]
	}
	return strings.TrimRight(cut, " ") + mark
}

func sentences(prose string) []string {
	var out []string
	from := 0
	for i := 0; i+1 < len(prose); i++ {
		if (prose[i] == '.' || prose[i] == '!' || prose[i] == '?') && prose[i+1] == ' ' {
			out = append(out, strings.TrimSpace(prose[from:i+1]))
			from = i + 1
		}
	}
	if rest := strings.TrimSpace(prose[from:]); rest != "" {
		out = append(out, rest)
	}
	return out
}

// centrality ranks units by how much they share with all others.
func centrality(units []string) []float64 {
	n := len(units)
	vectors := unitVectors(units)
	links := make([]float32, n*n)
	sums := make([]float64, n)
	for i := range n {
		for j := i + 1; j < n; j++ {
			w := dot(vectors[i], vectors[j])
			links[i*n+j], links[j*n+i] = w, w
			sums[i] += float64(w)
			sums[j] += float64(w)
		}
	}
	ranks, next := make([]float64, n), make([]float64, n)
	for i := range ranks {
		ranks[i] = 1 / float64(n)
	}
	for range rankRounds {
		for i := range next {
			next[i] = (1 - damping) / float64(n)
		}
		for i := range n {
			if sums[i] == 0 {
				continue
			}
			give := damping * ranks[i] / sums[i]
			for j, w := range links[i*n : (i+1)*n] {
				next[j] += give * float64(w)
			}
		}
		ranks, next = next, ranks
	}
	return ranks
}

// unitVectors weighs each unit's terms by their rarity within the document and
// brings them to length 1.
func unitVectors(units []string) [][]Term {
	vectors := make([][]Term, len(units))
	df := map[uint32]int{}
	for i, u := range units {
		vectors[i] = Vector(u)
		for _, t := range vectors[i] {
			df[t.Dim]++
		}
	}
	for _, v := range vectors {
		sum := 0.0
		for i := range v {
			v[i].Weight *= float32(math.Log(1 + float64(len(units))/float64(df[v[i].Dim])))
			sum += float64(v[i].Weight) * float64(v[i].Weight)
		}
		if sum > 0 {
			scale := float32(1 / math.Sqrt(sum))
			for i := range v {
				v[i].Weight *= scale
			}
		}
	}
	return vectors
}

// dot is the inner product of two vectors in order of Dim.
func dot(a, b []Term) float32 {
	var sum float32
	for i, j := 0, 0; i < len(a) && j < len(b); {
		switch {
		case a[i].Dim < b[j].Dim:
			i++
		case a[i].Dim > b[j].Dim:
			j++
		default:
			sum += a[i].Weight * b[j].Weight
			i++
			j++
		}
	}
	return sum
}
