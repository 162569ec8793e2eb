package night

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"nightshift/workers/run"
	"nightshift/workers/text"
)

// document is one input of the night.
type document struct {
	root, path string
	bytes      int64
}

var endings = []string{".md", ".html", ".txt", ".go"}

// Roots answers the folders the night reads: the one that was asked for, or
// the project's documents, where there are any, and the Go distribution's own.
func Roots(docs string) ([]string, error) {
	if docs != "" {
		absolute, err := filepath.Abs(docs)
		return []string{absolute}, err
	}
	var roots []string
	if _, err := os.Stat("go.mod"); err == nil {
		if absolute, err := filepath.Abs("docs"); err == nil && isFolder(absolute) {
			roots = append(roots, absolute)
		}
	}
	if distribution := goRoot(); distribution != "" {
		for _, part := range []string{"doc", "src"} {
			if folder := filepath.Join(distribution, part); isFolder(folder) {
				roots = append(roots, folder)
			}
		}
	}
	if len(roots) == 0 {
		return nil, errors.New("no documents: there is no Go distribution here; name a folder of documents")
	}
	return roots, nil
}

func isFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// goRoot asks the go command, for a binary may run far from where it was built.
func goRoot() string {
	if out, err := exec.Command("go", "env", "GOROOT").Output(); err == nil {
		if folder := strings.TrimSpace(string(out)); isFolder(folder) {
			return folder
		}
	}
	for _, folder := range []string{os.Getenv("GOROOT"), "/usr/local/go", "/usr/lib/go"} {
		if folder != "" && isFolder(filepath.Join(folder, "src")) {
			return folder
		}
	}
	return ""
}

// list finds the documents of the folders, tests last: there are plenty.
func list(roots []string) ([]document, error) {
	var found []document
	for _, root := range roots {
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err != nil {
				if d != nil && d.IsDir() && path != root {
					return filepath.SkipDir // an unreadable folder costs its own documents only
				}
				return err
			}
			if d.IsDir() {
				if name := d.Name(); path != root && (strings.HasPrefix(name, ".") || name == "testdata" || name == "vendor") {
					return filepath.SkipDir
				}
				return nil
			}
			if !slices.Contains(endings, strings.ToLower(filepath.Ext(path))) {
				return nil
			}
			below, err := filepath.Rel(root, path)
			if err != nil {
				return err
			}
			one := document{root: root, path: below}
			if info, err := d.Info(); err == nil {
				one.bytes = info.Size()
			}
			found = append(found, one)
			return nil
		})
		if err != nil {
			return nil, fmt.Errorf("documents: %w", err)
		}
	}
	slices.SortStableFunc(found, func(a, b document) int { return cmp.Compare(test(a), test(b)) })
	return found, nil
}

func test(d document) int {
	if strings.HasSuffix(d.path, "_test.go") {
		return 1
	}
	return 0
}

// Bounds of a night that was given no limit: enough work for the shares to
// show over half a minute on this machine, and never more than ends within
// two minutes.
const (
	wantedWork   = 27 * time.Second // CPU time of one tenant's summaries
	calibration  = 600 * time.Millisecond
	fewestOfAuto = 200 // on a machine that is busy with other things, too, the night must end
	mostOfAuto   = 4000
)

// deal gives each tenant its documents: evenly spaced over the list, so that
// every part of it is seen, and no two tenants the same one.
func deal(all []document, tenants, limit int) [][]document {
	out := make([][]document, tenants)
	each := len(all) / tenants
	if limit <= 0 {
		limit = affordable(all)
	}
	each = min(each, limit)
	if each == 0 && len(all) > 0 { // fewer documents than tenants: all read the same
		for i := range out {
			out[i] = all[:min(len(all), max(limit, 1))]
		}
		return out
	}
	// Tests come last; they are needed only when the rest does not do.
	plain := slices.IndexFunc(all, func(d document) bool { return test(d) == 1 })
	if plain >= each*tenants {
		all = all[:plain]
	}
	for n := range each * tenants {
		out[n%tenants] = append(out[n%tenants], all[n*len(all)/(each*tenants)])
	}
	return out
}

// affordable measures how long this machine takes to summarise a sample and
// answers how many documents fill the night.
func affordable(all []document) int {
	begun, n := time.Now(), 0
	for at := 0; n < len(all) && time.Since(begun) < calibration; n++ {
		at = (at + 7919) % len(all)
		if content, err := run.Document(all[at].root, all[at].path, 0); err == nil {
			text.Summary(all[at].path, content, sentences)
		}
	}
	if n == 0 {
		return fewestOfAuto
	}
	return filling(time.Since(begun) / time.Duration(n))
}

// filling is how many documents fill the night when each takes so long.
func filling(each time.Duration) int {
	return min(mostOfAuto, max(fewestOfAuto, int(wantedWork/max(each, 1))))
}
