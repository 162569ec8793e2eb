package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
)

// The house: arrows point down, siblings never see each other. A package belongs to the room with the longest matching
// path; it may import its own room and every room of a lower floor.
type room struct {
	path    string
	floor   int
	outside string // modules it may use beside the standard library: none, cel, or any
	holds   string // the sentence a broken rule prints
}

const module = "nightshift"

var house = []room{
	{"", 60, "any", "the binary wires the rooms together"},
	{"bench", 60, "any", "measures the rooms from above"},
	{"chaos", 60, "any", "breaks the whole from above"},
	{"docs", 60, "any", "documents and the tests that keep them true"},
	{"examples", 60, "any", "shows the rooms from above"},
	{"web", 50, "any", "routes, guards, forwarding; everything HTTP that is not one handler"},
	{"web/acceptance", 60, "any", "holds the front door to its contract from outside"},
	{"web/browser", 60, "any", "looks at the pages in a real browser"},
	{"handlers", 38, "any", "hold what all handlers share"},
	{"handlers/api", 40, "any", "turns the public API into verbs"},
	{"handlers/ui", 40, "any", "turns pages into verbs"},
	{"handlers/worker", 40, "any", "turns the worker protocol into verbs"},
	{"templates", 35, "any", "pages over typed views, no rules"},
	{"static", 34, "any", "files the pages need"},
	{"scheduler/loop", 40, "any", "batches, ticks, the brain row"},
	{"scheduler/relay", 40, "any", "what follows events"},
	{"scheduler/sim", 40, "any", "the virtual world"},
	{"models/storetest", 40, "any", "drives both stores through the engine"},
	{"workers", 40, "any", "the SDK and the agent: they know the server by its wire types alone"},
	{"scheduler/engine", 30, "none", "decides: verbs on the board, no I/O"},
	{"workers/protocol", 30, "none", "wire types"},
	{"scheduler/board", 25, "none", "the picture of lines, leases and workers: it stands on the leaves and decides nothing"},
	{"scheduler", 20, "none", "a leaf: one idea, pure"},
	{"scheduler/dag", 20, "cel", "a leaf: dependencies and their conditions, the only place for CEL"},
	{"models/postgres", 20, "any", "the store on PostgreSQL"},
	{"models/memory", 20, "none", "the reference store"},
	{"models/postgres/pgtest", 21, "any", "databases for tests"},
	{"models/postgres/local", 15, "any", "the embedded PostgreSQL"},
	{"migrations", 15, "any", "the schema"},
	{"models", 10, "none", "nouns and the Law"},
}

// goPackage is what `go list -json` tells of a package.
type goPackage struct {
	ImportPath string
	Dir        string
	Name       string
	Export     string
	Standard   bool
	GoFiles    []string
	Imports    []string
	Error      *struct{ Err string }
}

func goList(args ...string) ([]goPackage, error) {
	cmd := exec.Command("go", append([]string{"list", "-json=ImportPath,Dir,Name,Export,Standard,GoFiles,Imports,Error"}, args...)...)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list %v: %w\n%s", args, err, errs.Bytes())
	}
	var all []goPackage
	for decoder := json.NewDecoder(bytes.NewReader(out)); ; {
		var p goPackage
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return nil, err
		}
		all = append(all, p)
	}
}

var ours = sync.OnceValues(func() ([]goPackage, error) { return goList("./...") })

func ourPackages(t *testing.T) []goPackage {
	t.Helper()
	all, err := ours()
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// within is the path inside the module, and whether the import is ours at all.
func within(importPath string) (string, bool) {
	if importPath == module {
		return "", true
	}
	return strings.CutPrefix(importPath, module+"/")
}

func roomOf(path string) room {
	best := room{floor: -1}
	for _, r := range house {
		fits := r.path == path || r.path != "" && strings.HasPrefix(path, r.path+"/")
		if fits && len(r.path) >= len(best.path) {
			best = r
		}
	}
	if best.path == "scheduler" { // each leaf is a room of its own
		best.path = path
	}
	return best
}

func isStandard(importPath string) bool {
	first, _, _ := strings.Cut(importPath, "/")
	return !strings.Contains(first, ".")
}

func TestArrowsPointDown(t *testing.T) {
	for _, p := range ourPackages(t) {
		path, _ := within(p.ImportPath)
		own := roomOf(path)
		if own.floor < 0 {
			t.Errorf("%s has no room: give it a row in the house", p.ImportPath)
			continue
		}
		for _, imported := range p.Imports {
			other, inside := within(imported)
			switch {
			case inside:
				target := roomOf(other)
				if target.path != own.path && target.floor >= own.floor {
					t.Errorf("%s imports %s: %q %s, so it never sees %q, which %s", p.ImportPath, imported, own.path, own.holds, target.path, target.holds)
				}
				if own.path == "workers" && target.path != own.path && target.path != "workers/protocol" {
					t.Errorf("%s imports %s: %q is %s", p.ImportPath, imported, own.path, own.holds)
				}
			case isStandard(imported) || own.outside == "any":
			case own.outside == "cel" && strings.HasPrefix(imported, "cel.dev/cel-go/"):
			default:
				t.Errorf("%s imports %s: %q %s, on the standard library alone", p.ImportPath, imported, own.path, own.holds)
			}
		}
	}
}

// What the engine reaches, however far, is the standard library, this module and what CEL brings through dag.
func TestEngineReachesNothingElse(t *testing.T) {
	reached := func(path string) map[string]bool {
		found := map[string]bool{}
		if _, err := os.Stat(filepath.FromSlash(path)); errors.Is(err, fs.ErrNotExist) {
			return found
		}
		deps, err := goList("-deps", "./"+path)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range deps {
			if _, inside := within(p.ImportPath); !inside && !p.Standard {
				found[p.ImportPath] = true
			}
		}
		return found
	}
	allowed := reached("scheduler/dag")
	for path := range reached("scheduler/engine") {
		if !allowed[path] {
			t.Errorf("scheduler/engine reaches %s, which is no part of CEL", path)
		}
	}
}

func TestPackagesAreNamedAndDocumented(t *testing.T) {
	vague := []string{"util", "utils", "common", "helper", "helpers", "misc", "base", "lib", "types"}
	for _, p := range ourPackages(t) {
		if slices.Contains(vague, p.Name) {
			t.Errorf("package %s: the name says nothing of what it holds", p.ImportPath)
		}
		if p.Name == "main" || len(p.GoFiles) == 0 {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(p.Dir, "doc.go"), nil, parser.PackageClauseOnly|parser.ParseComments)
		if err != nil {
			t.Errorf("package %s has no doc.go that says what it holds, what it promises and what it never does", p.ImportPath)
		} else if !strings.HasPrefix(file.Doc.Text(), "Package "+p.Name+" ") {
			t.Errorf("%s/doc.go does not begin with \"Package %s \"", p.ImportPath, p.Name)
		}
	}
}

const (
	mostFunction = 70
	mostFile     = 400
)

func TestNothingGrowsTooLong(t *testing.T) {
	for _, p := range ourPackages(t) {
		for _, name := range p.GoFiles {
			files := token.NewFileSet()
			file, err := parser.ParseFile(files, filepath.Join(p.Dir, name), nil, parser.ParseComments|parser.SkipObjectResolution)
			if err != nil {
				t.Error(err)
				continue
			}
			if ast.IsGenerated(file) {
				continue
			}
			if lines := files.File(file.FileStart).LineCount(); lines > mostFile {
				t.Errorf("%s/%s has %d lines; %d hold one idea", p.ImportPath, name, lines, mostFile)
			}
			for _, d := range file.Decls {
				f, ok := d.(*ast.FuncDecl)
				if !ok {
					continue
				}
				if lines := files.Position(f.End()).Line - files.Position(f.Pos()).Line + 1; lines > mostFunction {
					t.Errorf("%s: %s has %d lines; %d are the most", files.Position(f.Pos()), f.Name.Name, lines, mostFunction)
				}
			}
		}
	}
}

// isPure tells the rooms where time, chance and order are arguments.
func isPure(path string) bool {
	for _, apart := range []string{"models/postgres", "models/storetest", "scheduler/loop", "scheduler/relay"} {
		if path == apart || strings.HasPrefix(path, apart+"/") {
			return false
		}
	}
	return path == "models" || strings.HasPrefix(path, "models/") || strings.HasPrefix(path, "scheduler/")
}

func TestDecisionsArePure(t *testing.T) {
	exports, err := exportData()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range ourPackages(t) {
		path, _ := within(p.ImportPath)
		if !isPure(path) || len(p.GoFiles) == 0 {
			continue
		}
		files := token.NewFileSet()
		var parsed []*ast.File
		for _, name := range p.GoFiles {
			file, err := parser.ParseFile(files, filepath.Join(p.Dir, name), nil, parser.ParseComments)
			if err != nil {
				t.Fatal(err)
			}
			parsed = append(parsed, file)
		}
		info := &types.Info{Types: map[ast.Expr]types.TypeAndValue{}, Uses: map[*ast.Ident]types.Object{}}
		checker := types.Config{Importer: importer.ForCompiler(files, "gc", func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) })}
		if _, err := checker.Check(p.ImportPath, files, parsed, info); err != nil {
			t.Errorf("%s: %v", p.ImportPath, err)
			continue
		}
		for _, file := range parsed {
			purity{t, files, info, file}.check()
		}
	}
}

// exportData finds the compiled form of whatever a pure package imports.
func exportData() (map[string]string, error) {
	var pure []string
	all, err := ours()
	if err != nil {
		return nil, err
	}
	for _, p := range all {
		if path, _ := within(p.ImportPath); isPure(path) {
			pure = append(pure, p.ImportPath)
		}
	}
	exports := map[string]string{}
	if len(pure) == 0 {
		return exports, nil
	}
	deps, err := goList(append([]string{"-export", "-deps"}, pure...)...)
	if err != nil {
		return nil, err
	}
	for _, p := range deps {
		exports[p.ImportPath] = p.Export
	}
	return exports, nil
}

type purity struct {
	t     *testing.T
	files *token.FileSet
	info  *types.Info
	file  *ast.File
}

var impure = map[string]*regexp.Regexp{
	"time":         regexp.MustCompile(`^(Now|Since|Until|Sleep|After|AfterFunc|Tick|NewTimer|NewTicker)$`),
	"os":           regexp.MustCompile(`^(Getenv|LookupEnv|Environ|ExpandEnv|Getpid|Hostname)$`),
	"math/rand":    regexp.MustCompile(`^[^N]|^N[^e]`), // all but New…: the rest draws from one global source
	"math/rand/v2": regexp.MustCompile(`^[^N]|^N[^e]|^N$`),
	"crypto/rand":  regexp.MustCompile(`.`),
}

func (p purity) check() {
	var around []ast.Node // the nodes we are inside of
	ast.Inspect(p.file, func(n ast.Node) bool {
		if n == nil {
			around = around[:len(around)-1]
			return true
		}
		switch n := n.(type) {
		case *ast.GoStmt:
			p.fail(n, "starts a goroutine")
		case *ast.SelectorExpr:
			p.selector(n, around)
		case *ast.RangeStmt:
			p.loop(n, around)
		}
		around = append(around, n)
		return true
	})
}

func (p purity) fail(n ast.Node, what string) {
	p.t.Errorf("%s %s: here time, chance and order are arguments", p.files.Position(n.Pos()), what)
}

func (p purity) selector(n *ast.SelectorExpr, around []ast.Node) {
	object, ok := p.info.Uses[n.Sel].(*types.Func)
	if !ok || object.Pkg() == nil || object.Signature().Recv() != nil {
		return
	}
	pkg := object.Pkg().Path()
	if pattern, ok := impure[pkg]; ok && pattern.MatchString(object.Name()) {
		p.fail(n, "calls "+pkg+"."+object.Name())
	}
	if pkg == "maps" && slices.Contains([]string{"Keys", "Values", "All"}, object.Name()) && !p.sortedBy(around) && !p.saidAnyOrder(n) {
		p.fail(n, "takes a map in its own order (sort, or say \"any order\" and why)")
	}
}

// sortedBy tells whether a call is the argument of slices.Sorted….
func (p purity) sortedBy(around []ast.Node) bool {
	for _, n := range around {
		if call, ok := n.(*ast.CallExpr); ok && strings.HasPrefix(p.called(call), "slices.Sorted") {
			return true
		}
	}
	return false
}

func (p purity) called(call *ast.CallExpr) string {
	selector, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return ""
	}
	object, ok := p.info.Uses[selector.Sel].(*types.Func)
	if !ok || object.Pkg() == nil {
		return ""
	}
	return object.Pkg().Path() + "." + object.Name()
}

// loop allows a loop over a map when its function sorts afterwards, or a comment says that any order will do.
func (p purity) loop(n *ast.RangeStmt, around []ast.Node) {
	over := p.info.Types[n.X].Type
	if over == nil {
		return
	}
	if _, isMap := over.Underlying().(*types.Map); !isMap || p.saidAnyOrder(n) {
		return
	}
	for _, outer := range slices.Backward(around) {
		if _, isLiteral := outer.(*ast.FuncLit); !isLiteral {
			if _, isFunc := outer.(*ast.FuncDecl); !isFunc {
				continue
			}
		}
		sorts := false
		ast.Inspect(outer, func(inner ast.Node) bool {
			if call, ok := inner.(*ast.CallExpr); ok && call.Pos() > n.End() {
				name := p.called(call)
				sorts = sorts || strings.HasPrefix(name, "slices.Sort") || strings.HasPrefix(name, "sort.")
			}
			return true
		})
		if sorts {
			return
		}
		break
	}
	p.fail(n, "loops over a map in its own order (sort, or say \"any order\" and why)")
}

// saidAnyOrder looks for the words on the line or the one above it.
func (p purity) saidAnyOrder(n ast.Node) bool {
	line := p.files.Position(n.Pos()).Line
	for _, group := range p.file.Comments {
		for _, comment := range group.List {
			at := p.files.Position(comment.End()).Line
			if (at == line || at == line-1) && strings.Contains(strings.ToLower(comment.Text), "any order") {
				return true
			}
		}
	}
	return false
}

// Nothing in the project depends on the machine it was written on, and nothing is left for later in a comment.
func TestFilesAreClean(t *testing.T) {
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	checkPath := strings.Count(here, string(filepath.Separator)) > 1 // a short one could be in any text
	later := regexp.MustCompile(`\b(TO` + `DO|FIX` + `ME|X` + `XX)\b`)
	err = filepath.WalkDir(".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			if name := entry.Name(); name == ".git" || name == "vendor" || name == "node_modules" {
				return filepath.SkipDir
			}
			return nil
		}
		if info, err := entry.Info(); err != nil || info.Size() > 1<<20 || !info.Mode().IsRegular() {
			return err
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if checkPath && bytes.Contains(content, []byte(here)) {
			t.Errorf("%s names %s, the folder of one machine", path, here)
		}
		if strings.HasSuffix(path, ".go") {
			if mark := later.Find(content); mark != nil {
				t.Errorf("%s says %s: do it, or file it", path, mark)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
