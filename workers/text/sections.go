package text

import (
	"path/filepath"
	"regexp"
	"strings"
	"unicode"
)

// Section is a part of a document under one heading. The heading's text has
// been taken out of Body. Heading is "" for what stands under none.
type Section struct {
	Heading string
	Body    string
}

// tinySection is below what can be found by its content; such parts are kept
// together under no heading.
const tinySection = 120

// Sections takes a document apart by its format, told by the path's ending.
func Sections(path, content string) []Section {
	var found []Section
	switch strings.ToLower(filepath.Ext(path)) {
	case ".go":
		found = goSections(content)
	case ".html", ".htm":
		found = markupSections(content)
	default:
		found = markdownSections(content)
	}
	var out []Section
	var rest strings.Builder
	for _, s := range found {
		body := strings.TrimSpace(without(s.Body, s.Heading))
		switch {
		case body == "":
		case s.Heading == "" || len(body) < tinySection:
			rest.WriteString(s.Heading + "\n" + body + "\n")
		default:
			out = append(out, Section{s.Heading, body})
		}
	}
	if body := strings.TrimSpace(rest.String()); body != "" {
		out = append(out, Section{"", body})
	}
	return out
}

// without takes every occurrence of the heading out of the body, whatever its
// case; of a method's "Type.Name" the name alone goes too.
func without(body, heading string) string {
	if heading == "" {
		return body
	}
	names := []string{heading}
	if _, name, method := strings.Cut(heading, "."); method && !strings.ContainsAny(heading, " \t") && name != "" {
		names = append(names, name)
	}
	for _, name := range names {
		body = removeFold(body, name)
	}
	return body
}

// removeFold replaces whole occurrences of name by a space.
func removeFold(body, name string) string {
	lower, want := strings.ToLower(body), strings.ToLower(name)
	if want == "" || len(lower) != len(body) { // a rune that changes length by case: leave the rare text alone
		return strings.ReplaceAll(body, name, " ")
	}
	var out strings.Builder
	from := 0
	for {
		i := strings.Index(lower[from:], want)
		if i < 0 {
			out.WriteString(body[from:])
			return out.String()
		}
		i += from
		end := i + len(want)
		out.WriteString(body[from:i])
		if wordAt(lower, i-1) || wordAt(lower, end) { // part of a longer word
			out.WriteString(body[i:end])
		} else {
			out.WriteByte(' ')
		}
		from = end
	}
}

func wordAt(s string, i int) bool {
	if i < 0 || i >= len(s) {
		return false
	}
	c := s[i]
	return c == '_' || c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c >= 0x80
}

var goDeclaration = regexp.MustCompile(`^(?:func (?:\((?:\w+ )?\*?(\w+)(?:\[[^\]]*\])?\) )?(\w+)|type (\w+)|(?:var|const) (\w+))`)

// goSections makes a section of each declaration at the left margin, together
// with the comment above it.
func goSections(content string) []Section {
	var out []Section
	var above, body strings.Builder
	heading := ""
	flush := func() {
		if body.Len() > 0 {
			out = append(out, Section{heading, body.String()})
		}
		body.Reset()
		heading = ""
	}
	for line := range strings.Lines(content) {
		if strings.HasPrefix(line, "//") {
			above.WriteString(line)
			continue
		}
		m := goDeclaration.FindStringSubmatch(line)
		group := strings.HasPrefix(line, "const (") || strings.HasPrefix(line, "var (")
		if m != nil || group {
			flush()
		}
		if m != nil {
			heading = declared(m)
		}
		body.WriteString(above.String())
		above.Reset()
		body.WriteString(line)
	}
	body.WriteString(above.String())
	flush()
	return out
}

func declared(m []string) string {
	if m[1] != "" {
		return m[1] + "." + m[2]
	}
	return m[2] + m[3] + m[4]
}

var markdownHeading = regexp.MustCompile(`^#{1,6}\s+(.+?)\s*#*\s*$`)

func markdownSections(content string) []Section {
	var out []Section
	heading, fenced := "", false
	var body strings.Builder
	flush := func() {
		if body.Len() > 0 {
			out = append(out, Section{heading, body.String()})
		}
		body.Reset()
	}
	for line := range strings.Lines(content) {
		if strings.HasPrefix(line, "```") {
			fenced = !fenced
		}
		if m := markdownHeading.FindStringSubmatch(line); m != nil && !fenced {
			flush()
			heading = cleanHeading(m[1])
			continue
		}
		body.WriteString(line)
	}
	flush()
	return out
}

// cleanHeading drops anchors such as {#intro} and emphasis.
func cleanHeading(h string) string {
	if i := strings.Index(h, "{#"); i >= 0 {
		h = h[:i]
	}
	h = strings.Map(func(r rune) rune {
		if strings.ContainsRune("`*_[]", r) {
			return -1
		}
		return r
	}, h)
	return strings.TrimSpace(h)
}

var (
	markupHeading = regexp.MustCompile(`(?is)<h[1-6][^>]*>(.*?)</h[1-6]>`)
	markupSilent  = regexp.MustCompile(`(?is)<(script|style)\b.*?</(script|style)>|<!--.*?-->`)
	markupTag     = regexp.MustCompile(`(?s)<[^<>]*>`)
	entities      = strings.NewReplacer("&lt;", "<", "&gt;", ">", "&amp;", "&", "&quot;", `"`, "&nbsp;", " ", "&#39;", "'")
)

func markupSections(content string) []Section {
	content = markupSilent.ReplaceAllString(content, " ")
	var out []Section
	heading, from := "", 0
	for _, m := range markupHeading.FindAllStringSubmatchIndex(content, -1) {
		out = append(out, Section{heading, plain(content[from:m[0]])})
		heading, from = strings.Join(strings.FieldsFunc(plain(content[m[2]:m[3]]), unicode.IsSpace), " "), m[1]
	}
	return append(out, Section{heading, plain(content[from:])})
}

func plain(markup string) string { return entities.Replace(markupTag.ReplaceAllString(markup, " ")) }
