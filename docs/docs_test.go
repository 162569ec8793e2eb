package docs_test

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"nightshift/models"
)

// go test ./docs -update writes what is generated.
var update = flag.Bool("update", false, "write the generated parts of the documents anew")

// generated compares a part of a document with what the code says it is. The part stands between two comments.
func generated(t *testing.T, file, part, want string) {
	t.Helper()
	begin, end := "<!-- generated: "+part+" -->\n", "<!-- end of "+part+" -->"
	text := read(t, file)
	before, rest, ok := strings.Cut(text, begin)
	got, after, whole := strings.Cut(rest, end)
	if !ok || !whole {
		t.Fatalf("%s has no part %q", file, part)
	}
	if got == want {
		return
	}
	if !*update {
		t.Fatalf("%s: the part %q is not what the code says; write it anew with: go test ./docs -update", file, part)
	}
	if err := os.WriteFile(file, []byte(before+begin+want+end+after), 0o644); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, file string) string {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

func TestStatesAreFresh(t *testing.T) {
	generated(t, "states.md", "diagram", "```mermaid\n"+models.Diagram()+"```\n")
	var table strings.Builder
	table.WriteString("| cause | from | to | needs the lease's token |\n| --- | --- | --- | --- |\n")
	for _, row := range models.Law {
		from := make([]string, len(row.From))
		for i, s := range row.From {
			from[i] = s.String()
		}
		fenced := ""
		if row.Fenced {
			fenced = "yes"
		}
		fmt.Fprintf(&table, "| %s | %s | %s | %s |\n", row.On, strings.Join(from, ", "), row.To, fenced)
	}
	generated(t, "states.md", "law", table.String())
}

func TestEveryStateIsExplained(t *testing.T) {
	text := read(t, "states.md")
	for _, s := range models.States() {
		if !strings.Contains(text, "\n| `"+s.String()+"` |") {
			t.Errorf("states.md says nothing of the state %s", s)
		}
	}
}

func TestVariablesAreFresh(t *testing.T) {
	rows := literal(t, "../config.go", "variables")
	var table strings.Builder
	table.WriteString("| variable | preset | secret | what it says |\n| --- | --- | --- | --- |\n")
	for _, row := range rows.Elts {
		fields := row.(*ast.CompositeLit).Elts // name, preset, secret, set, about
		secret := ""
		if fields[2].(*ast.Ident).Name == "true" {
			secret = "yes"
		}
		fmt.Fprintf(&table, "| `%s` | %s | %s | %s |\n", word(t, fields[0]), quoted(word(t, fields[1])), secret, word(t, fields[4]))
	}
	generated(t, "operations.md", "variables", table.String())
}

// The metrics are those that web describes: in prometheus.NewDesc and in options with Name and Help.
func TestMetricsAreFresh(t *testing.T) {
	files, err := filepath.Glob("../web/*metrics.go")
	if err != nil {
		t.Fatal(err)
	}
	var rows []string
	for _, file := range files {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok {
				rows = append(rows, metric(t, call)...)
			}
			return true
		})
	}
	slices.Sort(rows)
	generated(t, "operations.md", "metrics", "| name | labels | what it says |\n| --- | --- | --- |\n"+strings.Join(rows, ""))
}

// metric is the row of a call that makes a metric with a name of its own, else nothing.
func metric(t *testing.T, call *ast.CallExpr) []string {
	made, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || len(call.Args) < 2 {
		return nil
	}
	row := func(name, help, labels ast.Expr) []string {
		var words []string
		if list, ok := labels.(*ast.CompositeLit); ok {
			for _, e := range list.Elts {
				words = append(words, word(t, e))
			}
		}
		return []string{fmt.Sprintf("| `%s` | %s | %s |\n", word(t, name), strings.Join(words, ", "), word(t, help))}
	}
	switch made.Sel.Name {
	case "NewDesc":
		if _, fixed := call.Args[0].(*ast.BasicLit); fixed {
			return row(call.Args[0], call.Args[1], call.Args[2])
		}
	case "NewCounterVec", "NewHistogramVec", "NewGaugeVec":
		fields := map[string]ast.Expr{}
		for _, e := range call.Args[0].(*ast.CompositeLit).Elts {
			pair := e.(*ast.KeyValueExpr)
			fields[pair.Key.(*ast.Ident).Name] = pair.Value
		}
		return row(fields["Name"], fields["Help"], call.Args[1])
	}
	return nil
}

var alert = regexp.MustCompile(`alertsTotal, \S+, "([a-z_]+)"`)

func TestEveryAlertIsExplained(t *testing.T) {
	text := read(t, "operations.md")
	found := alert.FindAllStringSubmatch(read(t, "../web/loop_metrics.go"), -1)
	if len(found) == 0 {
		t.Fatal("no alert was found in web/loop_metrics.go")
	}
	for _, m := range found {
		if !strings.Contains(text, "\n| `"+m[1]+"` |") {
			t.Errorf("operations.md does not say what the alert %s means and what to do", m[1])
		}
	}
}

func TestWhatIsRefusedIsFresh(t *testing.T) {
	var names []string
	for _, row := range literal(t, "../handlers/api/tasks_input.go", "notBuilt").Elts {
		names = append(names, "`"+word(t, row.(*ast.KeyValueExpr).Key)+"`")
	}
	slices.Sort(names)
	generated(t, "api.md", "refused task fields", strings.Join(names, ", ")+"\n")
}

// literal finds the value of a variable in a file.
func literal(t *testing.T, file, name string) *ast.CompositeLit {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	var found *ast.CompositeLit
	ast.Inspect(parsed, func(n ast.Node) bool {
		if spec, ok := n.(*ast.ValueSpec); ok && len(spec.Values) == 1 && spec.Names[0].Name == name {
			found, _ = spec.Values[0].(*ast.CompositeLit)
		}
		return found == nil
	})
	if found == nil {
		t.Fatalf("%s has no variable %s", file, name)
	}
	return found
}

func word(t *testing.T, e ast.Expr) string {
	t.Helper()
	lit, ok := e.(*ast.BasicLit)
	if !ok {
		t.Fatalf("%T is no string", e)
	}
	text, err := strconv.Unquote(lit.Value)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func quoted(text string) string {
	if text == "" {
		return ""
	}
	return "`" + text + "`"
}

var (
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)|(?:src|srcset|href)="([^"]+)"`)
	heading = regexp.MustCompile(`(?m)^#+ (.+)$`)
	notSlug = regexp.MustCompile(`[^a-z0-9 _-]`)
	fence   = regexp.MustCompile("(?ms)^```.*?^```$")
)

// documents are those of the root and all below docs.
func documents(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("../*.md")
	if err != nil {
		t.Fatal(err)
	}
	err = filepath.WalkDir(".", func(path string, _ fs.DirEntry, err error) error {
		if strings.HasSuffix(path, ".md") {
			files = append(files, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func slugs(text string) []string {
	var out []string
	for _, m := range heading.FindAllStringSubmatch(fence.ReplaceAllString(text, ""), -1) {
		slug := notSlug.ReplaceAllString(strings.ToLower(m[1]), "")
		out = append(out, strings.ReplaceAll(slug, " ", "-"))
	}
	return out
}

func TestLinksLeadSomewhere(t *testing.T) {
	for _, file := range documents(t) {
		for _, m := range link.FindAllStringSubmatch(fence.ReplaceAllString(read(t, file), ""), -1) {
			target := m[1] + m[2]
			if strings.Contains(target, "://") || strings.HasPrefix(target, "mailto:") {
				continue
			}
			path, section, _ := strings.Cut(target, "#")
			path = filepath.Join(filepath.Dir(file), path)
			if strings.HasPrefix(target, "#") {
				path = file
			}
			if _, err := os.Stat(path); err != nil {
				t.Errorf("%s links to %s, which is not there", file, target)
			} else if section != "" && !slices.Contains(slugs(read(t, path)), section) {
				t.Errorf("%s links to %s, but there is no such section", file, target)
			}
		}
	}
}

var (
	called   = regexp.MustCompile(`/v1/[^\s"'` + "`" + `|)?,]+`)
	declared = regexp.MustCompile(`"(/v1/[a-z0-9:_/.-]+)"`)
)

// Every endpoint that a document calls is in a table of routes: "$T" and "{id}" stand for a parameter, and so may any word.
func TestEndpointsExist(t *testing.T) {
	var routes [][]string
	err := filepath.WalkDir("../handlers", func(path string, _ fs.DirEntry, err error) error {
		if strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, "_test.go") {
			for _, m := range declared.FindAllStringSubmatch(read(t, path), -1) {
				routes = append(routes, strings.Split(m[1], "/"))
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range documents(t) {
		for _, path := range called.FindAllString(read(t, file), -1) {
			parts := strings.Split(strings.TrimRight(path, "./:;*"), "/")
			if !slices.ContainsFunc(routes, func(r []string) bool { return leadsTo(r, parts) }) {
				t.Errorf("%s calls %s, which is in no table of routes", file, path)
			}
		}
	}
}

func leadsTo(route, path []string) bool {
	if len(route) != len(path) {
		return false
	}
	for i := range route {
		if route[i] != path[i] && !strings.HasPrefix(route[i], ":") {
			return false
		}
	}
	return true
}

// Every flag that a document gives to nightshift is a flag of some command.
func TestFlagsExist(t *testing.T) {
	files, err := filepath.Glob("../cmd_*.go")
	if err != nil {
		t.Fatal(err)
	}
	var source strings.Builder
	for _, file := range files {
		source.WriteString(read(t, file))
	}
	command := regexp.MustCompile("nightshift (serve|demo|worker|token|version)((?:[^`\n]|\\\n)*)")
	flags := regexp.MustCompile(`\s--([a-z-]+)`)
	for _, file := range documents(t) {
		for _, line := range command.FindAllStringSubmatch(read(t, file), -1) {
			for _, m := range flags.FindAllStringSubmatch(line[2], -1) {
				if m[1] != "help" && !strings.Contains(source.String(), `"`+m[1]+`"`) {
					t.Errorf("%s calls nightshift %s --%s, and there is no such flag", file, line[1], m[1])
				}
			}
		}
	}
}

var decision = regexp.MustCompile(`^adr/(\d{4})-[a-z0-9-]+\.md$`)

func TestDecisionsAreWhole(t *testing.T) {
	index := read(t, "adr/README.md")
	files, err := filepath.Glob("adr/*.md")
	if err != nil {
		t.Fatal(err)
	}
	number := 0
	for _, file := range files {
		if file == "adr/README.md" {
			continue
		}
		number++
		m := decision.FindStringSubmatch(file)
		if m == nil || m[1] != fmt.Sprintf("%04d", number) {
			t.Errorf("%s: decisions are named NNNN-title.md and numbered without gaps; this is number %04d", file, number)
			continue
		}
		text := read(t, file)
		for _, part := range []string{fmt.Sprintf("# %d. ", number), "\nStatus: ", "\n## Context\n", "\n## Decision\n", "\n## Considered\n", "\n## Consequences\n"} {
			if !strings.Contains(text, part) {
				t.Errorf("%s has no %q", file, strings.TrimSpace(part))
			}
		}
		if !strings.Contains(index, "("+filepath.Base(file)+")") {
			t.Errorf("adr/README.md does not list %s", file)
		}
	}
}
